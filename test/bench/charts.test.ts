import { readdir, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { renderChart } from '../../local/scale/charts.ts';
import { readCharts } from './recorded-charts.ts';

test('names every value of the horizontal axis, in a form that has room', () => {
  const values = [1_000, 10_000, 100_000, 1_000_000];
  const panels = [1, 2, 3].map((panel) => ({ title: `${panel}`, lines: [{ name: 'product', values: [1, 2, 3, 4] }] }));
  const svg = renderChart({ title: 'Growth', x: { name: 'entities', values }, y: 'ms', panels });
  const labels = [...svg.matchAll(/>(\d+[KM])<\/text>/g)].map(([, label]) => label);
  expect(labels.slice(0, 4)).toEqual(['1K', '10K', '100K', '1M']);
  expect(labels).toHaveLength(12);
});

test('the charts of the documentation show the recorded points; npm run bench -- --redraw draws them', {
  tags: ['slow'],
}, async () => {
  const folder = new URL('../../docs/internals/benchmarks/', import.meta.url);
  const drawn = (await readdir(folder)).filter((name) => name.endsWith('.svg'));
  const charts = Object.entries(await readCharts());
  expect(charts.map(([name]) => `${name}.svg`).toSorted()).toEqual(drawn.toSorted());
  for (const [name, chart] of charts)
    expect(await readFile(new URL(`${name}.svg`, folder), 'utf8'), name).toBe(renderChart(chart));
});
