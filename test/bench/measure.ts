import { Agent, request } from 'node:http';

/** One HTTP request of a task, without its origin. */
export interface BenchRequest {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
}

/** A running server, product or plain. */
export interface Side {
  readonly url: string;
  readonly token?: string | undefined;
}

/** The latencies of one round, in milliseconds, and its throughput. */
export interface Round {
  readonly p50: number;
  readonly p99: number;
  readonly perSecond: number;
}

/** Calls with this many callers, each one after the other, for a time. Throws if a response is not a success. */
export async function runRound(
  side: Side,
  next: () => BenchRequest,
  { callers, milliseconds }: { readonly callers: number; readonly milliseconds: number },
): Promise<Round> {
  const agent = new Agent({ keepAlive: true, maxSockets: callers });
  const latencies: number[] = [];
  const since = performance.now();
  const until = since + milliseconds;
  const call = async () => {
    while (performance.now() < until) {
      const start = performance.now();
      await send(side, next(), agent);
      latencies.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
  const took = performance.now() - since;
  agent.destroy();
  const sorted = latencies.toSorted((one, other) => one - other);
  const at = (part: number) => sorted[Math.floor((sorted.length - 1) * part)] ?? 0;
  return { p50: at(0.5), p99: at(0.99), perSecond: (latencies.length / took) * 1_000 };
}

/** Resolves with the body of a success. */
export function send({ url, token }: Side, { method, path, body }: BenchRequest, agent?: Agent): Promise<string> {
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
    sending.on('error', reject);
    sending.end(sent);
  });
}

export interface Ratio {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

/** Product to plain, round by round, so that a slow moment of the machine affects both. */
export function toRatio(product: readonly Round[], plain: readonly Round[], figure: keyof Round): Ratio {
  const ratios = product
    .map((round, index) => round[figure] / (plain[index]?.[figure] ?? Number.NaN))
    .toSorted((one, other) => one - other);
  const middle = Math.floor(ratios.length / 2);
  return { median: ratios[middle] ?? 0, least: ratios[0] ?? 0, most: ratios.at(-1) ?? 0 };
}
