import type { PipelineRequest } from '@azure/core-rest-pipeline';
import { createHttpHeaders } from '@azure/core-rest-pipeline';
import { expect, test, vi } from 'vitest';
import { RowkeyError } from '../../../lib/index.ts';
import { reportStartFailure } from '../../../lib/telemetry/telemetry.ts';

const sent: { url: string; body: string }[] = [];

// The real exporter without a network. It would request a token from the platform first.
vi.mock('@azure/monitor-opentelemetry-exporter', async (importOriginal) => {
  const { AzureMonitorTraceExporter, ...rest } =
    await importOriginal<typeof import('@azure/monitor-opentelemetry-exporter')>();
  const sendRequest = async (request: PipelineRequest) => {
    const body = typeof request.body === 'string' ? request.body : '';
    sent.push({ url: request.url, body });
    const accepted = '{"itemsReceived":1,"itemsAccepted":1,"errors":[]}';
    return { request, status: 200, headers: createHttpHeaders(), bodyAsText: accepted };
  };
  return {
    ...rest,
    AzureMonitorTraceExporter: class extends AzureMonitorTraceExporter {
      constructor({ connectionString = '' }: { connectionString?: string }) {
        const httpClient = { sendRequest };
        super({ connectionString, httpClient } as ConstructorParameters<typeof AzureMonitorTraceExporter>[0]);
      }
    },
  };
});
const connectionString =
  'InstrumentationKey=11111111-2222-3333-4444-555555555555;IngestionEndpoint=https://ingestion.example/';

test('sends the reason for a failed start to Application Insights', { tags: ['slow'] }, async () => {
  const reason = 'Invalid settings: TOKEN_ISSUER must be a URL that begins with https://.';
  await reportStartFailure(new RowkeyError('wrong-setting', reason), { connectionString });
  const tracks = sent.filter(({ url }) => url.startsWith('https://ingestion.example/'));
  expect(tracks.map(({ body }) => body).join('\n')).toContain(reason);
});
