import { once } from 'node:events';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Member, readTar, writeTar } from '../../local/cli/everything/tar-file.ts';
import { model } from '../everything/model.ts';
import { model as nextModel } from '../everything/next-model.ts';
import { buildFixtures } from '../fixtures/build.ts';
import { baseValues } from '../kit/base.ts';
import { type Product, useProduct } from '../product.ts';
import { spawnScript } from '../start-process.ts';
import { RESTORE_ACCOUNTS } from '../storage.ts';

/** An export of everything, and its import into another version of the model. */

const appOf = (name: string, of: typeof model | typeof nextModel) => ({
  model: of,
  folder: fileURLToPath(new URL(`../../dist/everything-${name}`, import.meta.url)),
  packs: undefined,
});
const [app, nextApp] = [appOf('first', model), appOf('next', nextModel)];
beforeAll(async () => {
  for (const [each, prefix] of [
    [app, ''],
    [nextApp, 'next-'],
  ] as const) {
    await buildFixtures(each, `../everything/${prefix}functions.ts`);
    // A bundle exports nothing, and the commands look for the model.
    const main = `{app.js,../../test/everything/${prefix}model.ts}`;
    await writeFile(join(each.folder, 'package.json'), JSON.stringify({ type: 'module', main }));
  }
});

const [first, second, third] = RESTORE_ACCOUNTS.everything;
const source = useProduct(import.meta.url, { app });
const same = useProduct(first, { app });
const later = useProduct(second, { app: nextApp, further: [third] });

/** Without the check against the OpenAPI description, which cannot follow free JSON. */
const clientOf = (product: Product) => async (method: string, path: string, body?: object) => {
  const headers = {
    authorization: `Bearer ${await product.token(['editor', 'operator'])}`,
    'content-type': 'application/json',
  };
  const sent = body ? { body: JSON.stringify(body) } : {};
  const response = await fetch(`${product.url}/api/${path}`, { method, headers, ...sent });
  const text = await response.text();
  return { status: response.status, body: text && JSON.parse(text) };
};
const ask = clientOf(source);

const LISTS = 15;
const TASKS = 30;
const ODD_VALUES: readonly object[] = [
  { amount: 2 ** 53, free: null },
  { amount: -(2 ** 53), free: [] },
  { amount: 1e-308, free: { a: [null, { b: '' }], toJSON: 1, __proto__x: 2, $files: { photo: { file: 'files/x' } } } },
  { amount: 0, free: 'null', title: '' },
  { at: '2026-11-29T10:00:00.123456+05:30', free: { sealed: 'v1.x' } },
  { secret: '{"sealed":"v1.x"}', text: 'é\u2028😀"\\\n'.repeat(100_000) },
  ...baseValues.KEY_NAMES.map((name: string) => ({ title: name, secret: name, free: { [name]: name } })),
];

beforeAll(async () => {
  for (let list = 0; list < LISTS; list += 1) {
    const create = (index: number) => ({
      ...{ list: `list${list}`, taskId: `t${String(index).padStart(3, '0')}`, title: `Task ${index}` },
      ...(list === 0 ? ODD_VALUES[index] : { amount: index }),
    });
    const actions = Array.from({ length: TASKS }, (_, index) => ({ create: create(index) }));
    const { body } = await ask('POST', 'tasks/batch', { actions });
    expect(body.results.filter(({ status }: { status: number }) => status !== 201)).toEqual([]);
  }
  // A task that is not imported yet when this one is.
  expect((await ask('PATCH', 'tasks/list1/t000', { follows: 't029' })).status).toBe(200);
  expect((await ask('PATCH', 'visits/list1/2026-11-29', { counts: { 23: 5 } })).status).toBe(204);
});

const NO_DIFFERENCE = `Compared ${LISTS * TASKS + 1} rows with the file: no difference.`;
const file = () => join(source.folder, 'everything.tar.gz');

async function changeFile(name: string, change: (members: Member[]) => Member[]): Promise<string> {
  const path = join(source.folder, name);
  const members = change(await Array.fromAsync(readTar(file())));
  const all = (async function* () {
    yield* members;
  })();
  await writeTar(path, all, { signal: new AbortController().signal, isZipped: false });
  return path;
}

const toText = ({ bytes }: Member) => Buffer.from(bytes).toString();
const withText = (member: Member, text: string): Member => ({ ...member, bytes: new TextEncoder().encode(text) });

describe('everything of a model', { tags: ['slow'] }, () => {
  beforeAll(async () => {
    expect(await source.run('export', '--all', file())).toMatchObject({ code: 0 });
  });

  test('has the manifest last, with the version, the counts and a hash of each part', async () => {
    const members = await Array.fromAsync(readTar(file()));
    const manifest = JSON.parse(toText(members.at(-1) as Member));
    expect(manifest).toMatchObject({
      format: 'rowkey-export',
      kinds: { tasks: { version: 1, rows: LISTS * TASKS, files: 0 }, visits: { version: 1, rows: 1 } },
      missing: [],
    });
    expect(Object.keys(manifest.members)).toEqual(members.slice(0, -1).map(({ name }) => name));
    for (const { rows, sha256 } of Object.values<{ rows: number; sha256: string }>(manifest.members)) {
      expect(rows).toBeGreaterThan(0);
      expect(sha256).toMatch(/^[0-9a-f]{64}$/);
    }
  });

  test('is imported again after a kill in the middle, and then has every value', async () => {
    let batches = 0;
    let onEnough = () => {};
    const proxy = createServer(async (request, response) => {
      const { url = '', method = 'GET', headers } = request;
      const body = await buffer(request);
      batches += 1;
      if (batches > 10) return onEnough();
      const sent = baseValues.pick(headers, ['authorization', 'content-type']) as Record<string, string>;
      const reply = await fetch(same.url + url, { method, headers: sent, body: new Uint8Array(body) });
      response.writeHead(reply.status, { 'content-type': 'application/json' }).end(await reply.text());
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void proxy.close());
    await once(proxy, 'listening');
    const { port } = proxy.address() as AddressInfo;
    const folder = join(source.folder, 'behind-the-proxy');
    await mkdir(folder);
    await cp(same.folder, folder, { recursive: true });
    const instance = JSON.parse(await readFile(join(folder, 'instance.json'), 'utf8'));
    await writeFile(join(folder, 'instance.json'), JSON.stringify({ ...instance, url: `http://127.0.0.1:${port}` }));
    const { child } = spawnScript('local/commands/import.ts', ['--all', file(), '--data', folder]);
    onEnough = () => child.kill('SIGKILL');
    expect(await once(child, 'close')).toEqual([null, 'SIGKILL']);

    const compared = await same.run('import', '--all', file(), '--compare');
    expect(compared).toMatchObject({
      code: 1,
      said: expect.stringMatching(
        /^tasks "list\d+\/t\d{3}" is in the file, and not stored\.\n(?:.*\n)*And \d+ more of tasks\.\n/,
      ),
    });
    const [, left] = /(\d+) differences\.\n$/.exec(compared.said) ?? [];
    expect(Number(left)).toBeLessThan(LISTS * TASKS);
    const { code, said } = await same.run('import', '--all', file());
    expect([code, said]).toEqual([0, expect.stringContaining(NO_DIFFERENCE)]);
    const [, created, unchanged] = /^(\d+) created, 1 stored, (\d+) unchanged, 0 rejected/.exec(said) ?? [];
    // The row that refers to a later one is sent again.
    expect(Number(created)).toBeLessThan(LISTS * TASKS);
    expect(Number(created) + Number(unchanged)).toBe(LISTS * TASKS);
    const read = async (of: Product, path: string) => (await clientOf(of)('GET', path)).body;
    for (const [index] of ODD_VALUES.entries()) {
      const path = `tasks/list0/t${String(index).padStart(3, '0')}`;
      expect(await read(same, path)).toEqual(await read(source, path));
    }
    expect(await read(same, 'tasks/list1/t000')).toMatchObject({ follows: 't029' });
    expect(await same.run('import', '--all', file(), '--compare')).toEqual({ code: 0, said: `${NO_DIFFERENCE}\n` });
  });

  test('is imported into a later version in another number of accounts, with the upgrades, the new fields and the new index', async () => {
    expect(await later.run('import', '--all', file())).toMatchObject({
      code: 0,
      said: expect.stringContaining(NO_DIFFERENCE),
    });
    const there = clientOf(later);
    const { body } = await there('GET', 'tasks/list1/t000');
    expect(body).toEqual({
      ...{ list: 'list1', taskId: 't000', label: 'Task 0!', amount: 0, follows: 't029', priority: 3 },
      ref: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    expect((await there('GET', 'tasks/by/label/Task%207!?top=100')).body.items).toHaveLength(LISTS - 1);
    for (const name of ['tasks', 'visits'])
      expect((await later.run('verify', name)).said).toMatch(/\d+ rows checked: 0 do not agree\.\n$/);
    // And back: the source has an earlier version.
    const back = join(source.folder, 'back.tar');
    expect(await later.run('export', '--all', back)).toMatchObject({ code: 0 });
    expect(await source.run('import', '--all', back)).toEqual({
      code: 1,
      said: 'The file has version 2 of tasks, and the model version 1. Import it into the model that exported it, or a later one.\n',
    });
  });

  test('is compared: each row that is missing, added or changed is named with its fields', async () => {
    const there = clientOf(same);
    expect((await there('DELETE', 'tasks/list5/t001')).status).toBe(204);
    expect((await there('PATCH', 'tasks/list5/t002', { title: 'x', amount: 5 })).status).toBe(200);
    expect((await there('POST', 'tasks', { list: 'list5', taskId: 'new', title: '' })).status).toBe(201);
    expect((await there('PATCH', 'visits/list1/2026-11-29', { counts: { 0: 1 } })).status).toBe(204);
    const { code, said } = await same.run('import', '--all', file(), '--compare');
    expect([code, said.trim().split('\n').toSorted()]).toEqual([
      1,
      [
        `Compared ${LISTS * TASKS + 1} rows with the file: 4 differences.`,
        'tasks "list5/new" is stored, and not in the file.',
        'tasks "list5/t001" is in the file, and not stored.',
        'tasks "list5/t002" differs in title, amount.',
        'visits "list1/2026-11-29" differs in counts.',
      ],
    ]);
  });

  test('is rejected as a whole if the file was cut, changed, or is no export', async () => {
    const changed = await changeFile('changed.tar', (members) =>
      members.map((member) =>
        /^rows\/visits/.test(member.name) ? withText(member, toText(member).replace('5', '6')) : member,
      ),
    );
    const without = await changeFile('without.tar', (members) => members.filter(({ name }) => !/visits/.test(name)));
    const cut = await changeFile('cut.tar', (members) => members.slice(0, -1));
    const half = join(source.folder, 'half.tar.gz');
    await writeFile(half, (await readFile(file())).subarray(0, 2_000));
    const other = await changeFile('other.tar', (members) => members.slice(-1).map((member) => withText(member, '{}')));
    const visits = 'its member rows/visits/000001.ndjson differs. Nothing is imported.\n';
    const outcomes: readonly (readonly [string, string | RegExp])[] = [
      [changed, `The file ${changed} was changed: ${visits}`],
      [without, `The file ${without} was changed: ${visits}`],
      [cut, `The file ${cut} is cut off: it has no manifest.json. Nothing is imported.\n`],
      [half, /^The file \S+half\.tar\.gz cannot be read: unexpected end of file\.\n$/],
      [other, `The file ${other} is not an export of this version of Rowkey.\n`],
      ['nowhere.tar', 'File nowhere.tar not found.\n'],
    ];
    for (const [path, said] of outcomes)
      expect(await same.run('import', '--all', path), path).toEqual({
        code: 1,
        said: typeof said === 'string' ? said : expect.stringMatching(said),
      });
  });

  test('leaves out what the token may not read and what the model does not have, and says so', async () => {
    const path = join(source.folder, 'of-an-operator.tar');
    const token = await source.token('operator');
    const { code, said } = await source.run('export', '--all', path, '--token', token);
    expect([code, said]).toEqual([
      1,
      expect.stringMatching(/not complete:\n- tasks cannot be read \(403\): .*\n- visits /),
    ]);
    expect(await same.run('import', '--all', path)).toMatchObject({
      code: 1,
      said: expect.stringMatching(/^Not imported: tasks cannot be read \(403\): /),
    });
    const renamed = await changeFile('renamed.tar', (members) =>
      members.map((member) => ({
        name: member.name.replace('visits', 'calls'),
        bytes: withText(member, toText(member).replaceAll('visits', 'calls')).bytes,
      })),
    );
    expect(await same.run('import', '--all', renamed)).toMatchObject({
      code: 1,
      said: expect.stringMatching(/^Not imported: 1 rows of calls, which the model does not have\.\n/),
    });
  });

  test('of wrong arguments, the commands say what is accepted', async () => {
    for (const [script, ...words] of [['export'], ['export', 'tasks'], ['import', 'tasks', 'x', '--all', 'y']] as const)
      expect(await source.run(script, ...words)).toEqual({
        code: 1,
        said: 'Name an entity and a file, or --all and a file.\n',
      });
  });
});
