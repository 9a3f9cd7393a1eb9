import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { createHttpHeaders, createPipelineRequest, type HttpMethods } from '@azure/core-rest-pipeline';
import { createMemoryStorage, type MemoryStorage } from '../lib/testing/index.ts';

/** Serves storage accounts in memory to clients of any kind. */
export interface MemoryServer {
  /** Returns the connection string of an account, which is empty at first. */
  open(account: string): string;
  /** The account of an address; undefined if another server has it. */
  find(url: string): MemoryStorage | undefined;
}

/** Starts a server, which does not keep the process alive. */
export async function startMemoryServer(): Promise<MemoryServer> {
  const accounts = new Map<string, MemoryStorage>();
  const listen = async () => {
    const server = createServer((request, response) => {
      const { port } = server.address() as AddressInfo;
      answer(request, response, port).catch(() => response.destroy());
    });
    // Clients close idle connections, and not the server: a request could meet the end of its connection.
    server.keepAliveTimeout = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    server.listen(0, '127.0.0.1', resolve).unref();
    await promise;
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  const [table, queue, blob] = await Promise.all([listen(), listen(), listen()]);

  async function answer(request: IncomingMessage, response: ServerResponse, port: number): Promise<void> {
    const { method, url = '', headers } = request;
    // The console uploads files directly to storage. Origins are checked only by the emulator.
    response.setHeader('access-control-allow-origin', '*').setHeader('access-control-expose-headers', '*');
    if (method === 'OPTIONS')
      return void response
        .writeHead(200, { 'access-control-allow-methods': '*', 'access-control-allow-headers': '*' })
        .end();
    const account = accounts.get(url.split(/[/?]/)[1] ?? '');
    if (!account) throw new Error(`No account has the address ${url}.`);
    const received = createPipelineRequest({
      // The host that the client named may be a proxy.
      url: `http://127.0.0.1:${port}${url}`,
      method: method as HttpMethods,
      headers: createHttpHeaders(headers as Record<string, string>),
      body: await buffer(request),
      streamResponseStatusCodes: new Set([Number.POSITIVE_INFINITY]),
    });
    const { status, headers: sent, readableStreamBody } = await account.httpClient.sendRequest(received);
    const body = readableStreamBody ? await buffer(readableStreamBody) : undefined;
    response.writeHead(status, { 'content-length': body?.length ?? 0, ...sent.toJSON() });
    response.end(body);
  }

  const origins = [table, queue, blob];
  return {
    find(url) {
      const { origin, pathname } = new URL(url);
      return origins.includes(origin) ? accounts.get(pathname.split('/')[1] ?? '') : undefined;
    },
    open(name) {
      const account = accounts.get(name) ?? createMemoryStorage({ account: name, origins: { table, queue, blob } });
      accounts.set(name, account);
      return account.connectionString;
    },
  };
}
