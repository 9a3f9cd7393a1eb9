import { setTimeout as sleep } from 'node:timers/promises';
import { metrics, SpanStatusCode, trace } from '@opentelemetry/api';
import type { MetricReader } from '@opentelemetry/sdk-metrics';
import type { SpanProcessor } from '@opentelemetry/sdk-trace-node';
import type { RowkeyError } from '../errors.ts';
import { telemetrySettings } from '../settings.ts';
import { managedIdentity } from '../storage/managed-identity.ts';

/** Metrics are sent this often; the alerts look at some minutes. */
const EXPORT_EVERY_MS = 60_000;
const CONSOLE_EVERY_MS = 10_000;
const SEND_WITHIN_MS = 10_000;

interface Running {
  readonly spans: SpanProcessor;
  readonly metrics: MetricReader;
}

let running: Running | undefined;

/**
 * Begins to send traces and metrics to Application Insights where the settings name one, under the app's identity, or to
 * the console where `TELEMETRY` is `console`. Else nothing is loaded, and nothing costs anything.
 */
export async function startTelemetry(): Promise<void> {
  const exporters = await exportersOf();
  if (!exporters || running) return;
  const [{ NodeTracerProvider }, { MeterProvider }, { resourceFromAttributes }] = await Promise.all([
    import('@opentelemetry/sdk-trace-node'),
    import('@opentelemetry/sdk-metrics'),
    import('@opentelemetry/resources'),
  ]);
  const resource = resourceFromAttributes({ 'service.name': telemetrySettings().WEBSITE_SITE_NAME ?? 'rowkey' });
  running = exporters;
  new NodeTracerProvider({ resource, spanProcessors: [exporters.spans] }).register();
  metrics.setGlobalMeterProvider(new MeterProvider({ resource, readers: [exporters.metrics] }));
}

/** Sends what has not been sent, where that can be done. */
export async function stopTelemetry(): Promise<void> {
  await Promise.allSettled([running?.spans.forceFlush(), running?.metrics.forceFlush()]);
}

/** Sends why the app could not start, as an exception of a span `start`, where telemetry can be sent at all. */
export async function reportStartFailure({ code, message }: RowkeyError): Promise<void> {
  const sent = async () => {
    await startTelemetry();
    const span = trace.getTracer('rowkey').startSpan('start');
    span.recordException({ name: code, message });
    span.setStatus({ code: SpanStatusCode.ERROR, message: code });
    span.end();
    await stopTelemetry();
  };
  // The reason is on the console already; the start does not wait for a service that is away.
  await Promise.race([sent().catch(() => undefined), sleep(SEND_WITHIN_MS, undefined, { ref: false })]);
}

async function exportersOf(): Promise<Running | undefined> {
  const { TELEMETRY, APPLICATIONINSIGHTS_CONNECTION_STRING: connectionString, ...rest } = telemetrySettings();
  if (TELEMETRY === 'console') {
    const [{ SimpleSpanProcessor }, { PeriodicExportingMetricReader }, own] = await Promise.all([
      import('@opentelemetry/sdk-trace-node'),
      import('@opentelemetry/sdk-metrics'),
      import('./console-exporter.ts'),
    ]);
    const exporter = own.consoleMetrics();
    return {
      spans: new SimpleSpanProcessor(own.consoleSpans()),
      metrics: new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: CONSOLE_EVERY_MS }),
    };
  }
  if (!connectionString) return undefined;
  const [{ BatchSpanProcessor }, { PeriodicExportingMetricReader }, azure] = await Promise.all([
    import('@opentelemetry/sdk-trace-node'),
    import('@opentelemetry/sdk-metrics'),
    import('@azure/monitor-opentelemetry-exporter'),
  ]);
  // Application Insights takes no key: local authentication is off.
  const options = { connectionString, credential: managedIdentity(rest.AzureWebJobsStorage__clientId) };
  return {
    spans: new BatchSpanProcessor(new azure.AzureMonitorTraceExporter(options)),
    metrics: new PeriodicExportingMetricReader({
      exporter: new azure.AzureMonitorMetricExporter(options),
      exportIntervalMillis: EXPORT_EVERY_MS,
    }),
  };
}
