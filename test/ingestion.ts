import { once } from 'node:events';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { z } from 'zod';

/** A row of the table AppMetrics, with the columns that the queries read. */
export interface MetricRow {
  readonly Name: string;
  readonly Sum: number;
  readonly Max: number;
  readonly ItemCount: number;
  readonly Properties: Readonly<Record<string, string>>;
}

const Metric = z.object({
  name: z.string(),
  value: z.number(),
  count: z.number().default(1),
  max: z.number().optional(),
});
const Envelope = z.object({
  data: z.object({
    baseType: z.string(),
    baseData: z.object({
      metrics: z.array(Metric).default([]),
      properties: z.record(z.string(), z.string()).default({}),
    }),
  }),
});

/**
 * Receives telemetry in the place of Application Insights, and issues tokens in the place of the platform. The process that
 * sends needs these variables.
 */
export async function startIngestion(): Promise<{
  readonly environment: Readonly<Record<string, string>>;
  readonly metrics: readonly MetricRow[];
  stop(): void;
}> {
  const metrics: MetricRow[] = [];
  const server = createServer(async (request, response) => {
    const sent = await buffer(request);
    const json = { 'content-type': 'application/json' };
    if (request.url?.startsWith('/token')) {
      const token = { access_token: 'a-token', expires_on: String(Math.floor(Date.now() / 1_000) + 86_400) };
      return response.writeHead(200, json).end(JSON.stringify({ ...token, token_type: 'Bearer', resource: 'r' }));
    }
    const text = (request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent).toString();
    const envelopes = z.array(Envelope).parse(text.startsWith('[') ? JSON.parse(text) : text.split('\n').map(read));
    for (const { baseData } of envelopes.map(({ data }) => data))
      for (const { name, value, count, max = value } of baseData.metrics)
        metrics.push({ Name: name, Sum: value, Max: max, ItemCount: count, Properties: baseData.properties });
    const accepted = { itemsReceived: envelopes.length, itemsAccepted: envelopes.length, errors: [] };
    return response.writeHead(200, json).end(JSON.stringify(accepted));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const key = '11111111-2222-3333-4444-555555555555';
  return {
    environment: {
      APPLICATIONINSIGHTS_CONNECTION_STRING: `InstrumentationKey=${key};IngestionEndpoint=https://127.0.0.1:${port}/`,
      APPLICATIONINSIGHTS_STATSBEAT_DISABLED: 'true',
      IDENTITY_ENDPOINT: `http://127.0.0.1:${port}/token`,
      IDENTITY_HEADER: 'a-secret',
      NODE_OPTIONS: `--import=${new URL('./fixtures/plain-ingestion.mjs', import.meta.url)}`,
    },
    metrics,
    stop: () => server.close(),
  };
}

function read(line: string): unknown {
  return JSON.parse(line);
}
