import { metrics } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';

/**
 * Collects the metrics of this process. The returned function returns the growth of a counter, or the count of a histogram, since
 * its last call for any metric.
 */
export function countedMetrics() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.DELTA);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1_000_000 });
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
  return async (name: string) => {
    await reader.forceFlush();
    const points = exporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
      .filter(({ descriptor }) => descriptor.name === name)
      .flatMap(({ dataPoints }) =>
        dataPoints.map(({ attributes, value }) => ({
          by: attributes,
          much: typeof value === 'number' ? value : value.count,
        })),
      );
    exporter.reset();
    return points;
  };
}
