import { expect, test } from 'vitest';
import { deployedApp } from '../../local/instance/deployed-app.ts';
import { makeExampleRequests } from '../../local/packs/example-requests.ts';
import { runCommand, useStartProcess } from '../start-process.ts';

/** The deployed app, under whichever host the tests run. CI runs this file first under Core Tools. */
const started = useStartProcess({ deployed: true }, ['--empty']);

test('the host loads every function, and every route of the deployed model returns 401 without a token', {
  tags: ['slow'],
}, async () => {
  const { process: running } = started;
  // The words of Core Tools, which serve the other functions of an app.
  expect(running.said()).not.toMatch(/function is in error|conflicts with/);
  const { code, said } = await runCommand('smoke', ['--url', running.url, '--patience', '0'], { deployed: true });
  expect(said).toMatch(/^\d+ routes returned 401 without a token\.$/m);
  expect(code).toBe(0);
});

test('an entity that was created can be read by its key', { tags: ['slow'] }, async ({ skip }) => {
  const { roles = [], requests = [] } = makeExampleRequests(deployedApp.model, []) ?? {};
  const [create, read] = requests;
  if (create?.method !== 'POST' || read?.method !== 'GET') return skip('No entity of the model has an example.');
  const ask = await started.process.as(...roles);
  const send = ({ method, path, body }: typeof create) => ask(method, path.replace('/api/', ''), body);
  const created = await send(create);
  expect(created.status).toBe(201);
  const found = await send(read);
  expect([found.status, await found.json()]).toEqual([200, await created.json()]);
});
