import { setTimeout as sleep } from 'node:timers/promises';
import { metrics, SpanStatusCode, trace } from '@opentelemetry/api';
import type { MetricReader } from '@opentelemetry/sdk-metrics';
import type { SpanProcessor } from '@opentelemetry/sdk-trace-node';
import type { RowkeyError } from '../base/errors.ts';
import { MINUTE_MS } from '../base/time.ts';
import { managedIdentity } from '../storage/managed-identity.ts';

/** How often metrics are sent; the alerts evaluate a few minutes. */
const EXPORT_EVERY_MS = MINUTE_MS;
const CONSOLE_EVERY_MS = 10_000;
const SEND_WITHIN_MS = 10_000;

interface Running {
  readonly spans: SpanProcessor;
  readonly metrics: MetricReader;
}

/** The destination of traces and metrics. */
export interface TelemetryOptions {
  /** Print traces and metrics. */
  readonly console?: boolean | undefined;
  /** Send traces and metrics to this Application Insights, with an identity: its local authentication may be off. */
  readonly connectionString?: string | undefined;
  /** The client id of that identity; system-assigned unless given. */
  readonly clientId?: string | undefined;
  /** The name under which the app appears. */
  readonly serviceName?: string | undefined;
}

/** OpenTelemetry providers are global, so all instances in a process share one telemetry. */
let started: Promise<Running> | undefined;

/** Starts to print or send traces and metrics. The first options in a process win; without a target nothing is loaded. */
export async function startTelemetry(options: TelemetryOptions): Promise<void> {
  if (!options.console && !options.connectionString) return;
  started ??= start(options);
  await started;
}

async function start(options: TelemetryOptions): Promise<Running> {
  const [running, { NodeTracerProvider }, { MeterProvider }, { resourceFromAttributes }] = await Promise.all([
    openExporters(options),
    import('@opentelemetry/sdk-trace-node'),
    import('@opentelemetry/sdk-metrics'),
    import('@opentelemetry/resources'),
  ]);
  const resource = resourceFromAttributes({ 'service.name': options.serviceName ?? 'rowkey' });
  new NodeTracerProvider({ resource, spanProcessors: [running.spans] }).register();
  metrics.setGlobalMeterProvider(new MeterProvider({ resource, readers: [running.metrics] }));
  return running;
}

/** Sends pending traces and metrics if the service is reachable. */
export async function stopTelemetry(): Promise<void> {
  const running = await started;
  await Promise.allSettled([running?.spans.forceFlush(), running?.metrics.forceFlush()]);
}

/** Sends the reason for a failed start as an exception of the span `start`, if telemetry is reachable. */
export async function reportStartFailure({ code, message }: RowkeyError, options: TelemetryOptions): Promise<void> {
  const send = async () => {
    await startTelemetry(options);
    const span = trace.getTracer('rowkey').startSpan('start');
    span.recordException({ name: code, message });
    span.setStatus({ code: SpanStatusCode.ERROR, message: code });
    span.end();
    await stopTelemetry();
  };
  // The reason is on the console already, so the start does not wait for an unreachable service.
  await Promise.race([send().catch(() => undefined), sleep(SEND_WITHIN_MS, undefined, { ref: false })]);
}

async function openExporters(settings: TelemetryOptions): Promise<Running> {
  if (settings.console) {
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
  const { connectionString = '', clientId } = settings;
  const [{ BatchSpanProcessor }, { PeriodicExportingMetricReader }, azure] = await Promise.all([
    import('@opentelemetry/sdk-trace-node'),
    import('@opentelemetry/sdk-metrics'),
    import('@azure/monitor-opentelemetry-exporter'),
  ]);
  // Local authentication of Application Insights is off, so the key in the connection string is useless.
  const options = { connectionString, credential: managedIdentity(clientId) };
  return {
    spans: new BatchSpanProcessor(new azure.AzureMonitorTraceExporter(options)),
    metrics: new PeriodicExportingMetricReader({
      exporter: new azure.AzureMonitorMetricExporter(options),
      exportIntervalMillis: EXPORT_EVERY_MS,
    }),
  };
}
