import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, inject, test, vi } from 'vitest';
import { defineModel } from '../../../lib/index.ts';
import { createRolesCommand } from '../../../local/cli/roles-command.ts';

/** A program named az keeps the registration in a file, as Microsoft Graph does: a change replaces the list, and an enabled role cannot be left out. */

// Another file has an az of its own.
const folder = join(inject('folder'), 'roles');
const registration = join(folder, 'registration.json');
const HR = { id: '1', value: 'hr', displayName: 'Human resources', isEnabled: true, origin: 'Application' };

beforeEach(async () => {
  await mkdir(folder, { recursive: true });
  await writeFile(registration, JSON.stringify({ appRoles: [HR] }));
  const az = `#!${process.execPath}
const { readFileSync, writeFileSync } = require('node:fs');
const [, , rest, ...args] = process.argv;
const of = (name) => args[args.indexOf(name) + 1];
if (rest !== 'rest' || !of('--url').startsWith("https://graph.microsoft.com/v1.0/applications(appId='api')")) process.exit(9);
const stored = readFileSync(${JSON.stringify(registration)}, 'utf8');
if (of('--method') === 'get') process.stdout.write(stored);
else if (JSON.parse(stored).appRoles.some(({ id }) => !of('--body').includes('"id":"' + id + '"'))) process.exit(8);
else writeFileSync(${JSON.stringify(registration)}, of('--body'));
`;
  await writeFile(join(folder, 'az'), az);
  await chmod(join(folder, 'az'), 0o755);
  vi.stubEnv('PATH', folder);
});

const model = defineModel({
  roles: ['hr', 'operator', 'user', 'visitor'],
  operatorRole: 'operator',
  signedIn: 'user',
  anyone: 'visitor',
  entities: [],
});
const add = () => createRolesCommand(async () => model).parseAsync(['api'], { from: 'user' });
const stored = async () => JSON.parse(await readFile(registration, 'utf8')).appRoles;

test('adds the roles that somebody has to be given, and keeps those that there are as they are', async () => {
  const said = vi.spyOn(console, 'log').mockImplementation(() => undefined);
  await add();
  expect(await stored()).toEqual([
    HR,
    {
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      value: 'operator',
      displayName: 'operator',
      description: 'operator',
      isEnabled: true,
      allowedMemberTypes: ['User', 'Application'],
    },
  ]);
  const before = await stored();
  await add();
  expect(await stored()).toEqual(before);
  expect(said.mock.calls.flat()).toEqual(['operator added.', 'The registration has every role of the model.']);
});
