import { afterAll, beforeAll, expect, test } from 'vitest';
import { testStorage } from '../../storage.ts';
import { HOST_KEY, type HostProcess, startHost } from './host-process.ts';

let host: HostProcess;
beforeAll(async () => {
  host = await startHost({ TEST_STORAGE: testStorage(import.meta.url) });
});
afterAll(() => host.stop());

test('a timer runs by hand through the admin route, one run after another, and knows its last run', async () => {
  const headers = { 'content-type': 'application/json', 'x-functions-key': HOST_KEY };
  const run = () => fetch(`${host.url}/admin/functions/Monthly`, { method: 'POST', headers, body: '{"input":""}' });
  const answers = await Promise.all([run(), run(), run()]);
  expect(answers.map((answer) => answer.status)).toEqual([202, 202, 202]);
  const lines = await host.logged('monthly monthly', 3);
  expect(lines[0]).toBe('[information] monthly monthly {"running":1,"pastDue":false}');
  for (const line of lines.slice(1)) expect(line).toMatch(/"running":1,"pastDue":false,"last":"20/);
});

test('a cron expression of six fields and a time span are kept', async () => {
  await host.logged('tick', 2);
  await host.logged('tock', 2);
});
