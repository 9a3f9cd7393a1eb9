import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { testStorage } from '../../storage.ts';
import { HOST_KEY, type HostProcess, startHost } from './host-process.ts';

let host: HostProcess;
beforeAll(async () => {
  host = await startHost({ TEST_STORAGE: testStorage(import.meta.url) });
});
afterAll(() => host.stop());

test('the admin route runs a timer, one run after another, with the instant of its last run', async () => {
  const headers = { 'content-type': 'application/json', 'x-functions-key': HOST_KEY };
  const run = () => fetch(`${host.url}/admin/functions/Monthly`, { method: 'POST', headers, body: '{"input":""}' });
  const answers = await Promise.all([run(), run(), run()]);
  expect(answers.map((answer) => answer.status)).toEqual([202, 202, 202]);
  const lines = await host.logged('monthly monthly', 3);
  expect(lines[0]).toBe('[information] monthly monthly {"running":1,"pastDue":false}');
  for (const line of lines.slice(1)) expect(line).toMatch(/"running":1,"pastDue":false,"last":"20/);
});

test('a disabled timer runs by the admin route alone', { tags: ['slow'] }, async () => {
  const quiet = await startHost({
    TEST_STORAGE: testStorage(import.meta.url),
    'AzureWebJobs.every-second.Disabled': 'true',
  });
  try {
    await quiet.logged('tick', 3);
    expect(quiet.lines.filter((line) => line.includes('tock'))).toEqual([]);
    const headers = { 'content-type': 'application/json', 'x-functions-key': HOST_KEY };
    await fetch(`${quiet.url}/admin/functions/every-second`, { method: 'POST', headers, body: '{}' });
    await quiet.logged('tock');
  } finally {
    await quiet.stop();
  }
});

test('timers run by a cron expression of six fields and by a time span', { tags: ['slow'] }, async () => {
  await host.logged('tick', 2);
  await host.logged('tock', 2);
});

test('the next run follows immediately if a run lasts beyond its scheduled time', { tags: ['slow'] }, async () => {
  const lines = await host.logged('overrun {', 2);
  const [first, second] = lines.map((line) => JSON.parse(line.slice(line.indexOf('{'))));
  // The next scheduled time is five and a half seconds later.
  expect(second.begun - first.ended).toBeLessThan(5_000);
});

test('the host makes up for missed runs once, when it starts', { tags: ['slow'] }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-timers-'));
  const file = join(folder, 'timers.json');
  const start = () => startHost({ TEST_STORAGE: testStorage(import.meta.url) }, '--state', file);
  const ended = async ({ stop, lines }: HostProcess) => {
    await stop();
    return lines.filter((line) => line.includes('monthly monthly'));
  };
  try {
    // A new timer has missed no run.
    expect(await ended(await start())).toEqual([]);
    const statuses = JSON.parse(await readFile(file, 'utf8'));
    expect(Object.keys(statuses)).toEqual(['monthly']);
    const longAgo = new Date(Date.now() - 40 * 86_400_000).toISOString();
    await writeFile(file, JSON.stringify({ monthly: { last: longAgo, since: longAgo } }));
    const late = await start();
    await late.logged('monthly monthly');
    expect(await ended(late)).toEqual([expect.stringContaining(`"pastDue":true,"last":"${longAgo}"`)]);
    expect(await ended(await start())).toEqual([]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
