import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { createPlainCode, type PlainCreate } from './plain.ts';

/** The plain code behind a bare HTTP handler. Prints its port. */

const { BENCH_STORAGE = '' } = process.env;
const code = createPlainCode(BENCH_STORAGE);

const server = createServer(async (request, response) => {
  try {
    const { searchParams, pathname } = new URL(request.url ?? '/', 'http://localhost');
    let body: unknown = {};
    if (pathname === '/row') {
      const [table = '', partition = '', row = ''] = ['table', 'partition', 'row'].map((part) =>
        searchParams.get(part),
      ) as string[];
      body = await code.readRow(table, partition, row);
    } else await code.create((await json(request)) as PlainCreate);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(body));
  } catch (error) {
    response.statusCode = 500;
    response.end(String(error));
  }
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  console.log(typeof address === 'object' && address ? address.port : 0);
});
