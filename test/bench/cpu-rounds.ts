import type { HttpClient } from '@azure/core-rest-pipeline';
import { createHttpHeaders } from '@azure/core-rest-pipeline';

/** CPU times of layers of code, and a stub of storage in this process. */

const ROUNDS = 9;
const CALLS = Number(process.argv[2] ?? 3_000);
const WARM_UP = 4_000;
const KEY = Buffer.alloc(64).toString('base64');

/** The connection string of an account at any address, such as `http://127.0.0.1:1/a`. */
export function toConnectionString(url: string): string {
  return `DefaultEndpointsProtocol=http;AccountName=a;AccountKey=${KEY};BlobEndpoint=${url};QueueEndpoint=${url};TableEndpoint=${url}`;
}

/** Prints the CPU time of each layer as a ratio to the first one. Rounds of all layers alternate, so that other work on this machine affects all. */
export async function reportCpu(layers: Readonly<Record<string, () => Promise<unknown>>>): Promise<void> {
  const rounds = Object.entries(layers).map(([name, call]) => ({ name, call, figures: [] as number[] }));
  for (const { call } of rounds) await repeat(call, WARM_UP);
  for (let round = 0; round < ROUNDS; round += 1)
    for (const { call, figures } of rounds) {
      const since = process.cpuUsage();
      await repeat(call, CALLS);
      const { user, system } = process.cpuUsage(since);
      figures.push((user + system) / CALLS);
    }
  const medianOf = (figures: readonly number[]) => figures.toSorted((one, other) => one - other)[ROUNDS >> 1] ?? 0;
  const base = rounds[0]?.figures ?? [];
  const longest = Math.max(...rounds.map(({ name }) => name.length));
  for (const { name, figures } of rounds) {
    const ratio = medianOf(figures.map((figure, round) => figure / (base[round] ?? Number.NaN)));
    console.log(`${name.padEnd(longest)} ${ratio.toFixed(2)} (${medianOf(figures).toFixed(0)} µs)`);
  }
}

async function repeat(call: () => Promise<unknown>, times: number): Promise<void> {
  for (let count = 0; count < times; count += 1) await call();
}

/** The body of a response of storage with one row. */
export function toRowBody(row: object): string {
  return JSON.stringify({ 'odata.etag': 'W/"1"', Timestamp: '2026-01-01T00:00:00Z', ...row });
}

/** Responds to every request with the same row. */
export function respondWithRow(row: object): HttpClient {
  const bodyAsText = toRowBody(row);
  return {
    sendRequest: async (request) => ({
      request,
      status: 200,
      headers: createHttpHeaders({ 'content-type': 'application/json;odata=minimalmetadata', etag: 'W/"1"' }),
      bodyAsText,
    }),
  };
}
