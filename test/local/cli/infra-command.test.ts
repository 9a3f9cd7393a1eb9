import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createInfraCommand } from '../../../local/cli/infra-command.ts';

test('names the role that a backup needs, when it has written the template of the model', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-infra-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const log = vi.spyOn(console, 'log').mockImplementation(() => undefined);
  onTestFinished(() => log.mockRestore());
  const model = import.meta.resolve('../../looking-back/model.ts');
  await writeFile(join(folder, 'app.mjs'), `export { model } from ${JSON.stringify(model)};`);
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module', main: 'app.mjs' }));
  const lastLine = async () => {
    await createInfraCommand().parseAsync([folder], { from: 'user' });
    return log.mock.lastCall?.[0];
  };
  expect(await lastLine()).toMatch(
    /^The backup needs a role, .* az deployment sub create .* -f infra\/backup-role\.bicep$/,
  );
  expect(await lastLine()).toBe('infra is up to date.');
});
