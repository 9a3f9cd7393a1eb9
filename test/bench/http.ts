import { Agent, request } from 'node:http';

/** One HTTP request of a task, without its origin. */
export interface BenchRequest {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
}

/** A running server. */
export interface Server {
  /** Before the path of a request. */
  readonly url: string;
  readonly token?: string | undefined;
}

/** More than the callers of any benchmark: each has a connection, which stays open. */
const agent = new Agent({ keepAlive: true, maxSockets: 256, maxFreeSockets: 256 });

/** Resolves with the body of a success. */
export async function send(server: Server, sent: BenchRequest): Promise<string> {
  try {
    return await sendOnce(server, sent);
  } catch (error) {
    // The server closed the idle connection at the same moment.
    if (error instanceof StaleConnection) return sendOnce(server, sent);
    throw error;
  }
}

class StaleConnection extends Error {}

function sendOnce({ url, token }: Server, { method, path, body }: BenchRequest): Promise<string> {
  const sent = body && JSON.stringify(body);
  const headers = {
    ...(token ? { authorization: `Bearer ${token}` } : {}),
    ...(sent ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(sent) } : {}),
  };
  return new Promise((resolve, reject) => {
    const sending = request(`${url}${path}`, { method, headers, agent }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('error', reject);
      response.on('end', () => {
        const { statusCode = 0 } = response;
        if (statusCode < 300) resolve(text);
        else reject(new Error(`${method} ${path} returned ${statusCode}: ${text.slice(0, 300)}`));
      });
    });
    sending.on('error', (error: NodeJS.ErrnoException) =>
      reject(sending.reusedSocket && error.code === 'ECONNRESET' ? new StaleConnection() : error),
    );
    sending.end(sent);
  });
}
