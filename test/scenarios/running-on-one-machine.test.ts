import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { access, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { openStorage } from '../../lib/storage/storage.ts';
import { EMULATOR_ACCOUNT } from '../../local/azurite.ts';
import { ROOT, runCommand, type StartProcess, startCommand } from '../start-process.ts';

const shell = (command: string) => promisify(execFile)('sh', ['-c', command], { cwd: ROOT });

/** What runs with this folder among its arguments. */
const processesOn = async (data: string) =>
  (await promisify(execFile)('ps', ['-A', '-o', 'args'])).stdout.split('\n').filter((line) => line.includes(data));

const STOPS_WITHIN_MS = 8_000;
const ADVENTURE_WORKS = '../shared/data/adventureworks-employees.csv';

let folder: string;
let running: StartProcess;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rowkey-start-'));
  running = await startCommand(['--port', '0', '--data', folder]);
});
afterAll(async () => {
  // Before the folder goes: the emulator writes its data out at its end.
  if (running && running.child.exitCode === null) await running.end();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

describe('npm start', () => {
  test('prints a token and commands that work as they stand', async () => {
    const commands = running.commands();
    expect(commands).toHaveLength(3);
    const [one, several, grant] = await Promise.all(
      commands.map(async (command) => JSON.parse((await shell(command)).stdout)),
    );
    expect(one).toMatchObject({ employeeId: '000123', email: 'jonesj@contoso.com', lastName: 'Jones' });
    expect(several.items.length).toBeGreaterThan(1);
    const token = running
      .said()
      .split('\n')
      .find((line) => line.startsWith('eyJ'));
    const read = await fetch(`${running.url}/api/departments/Sales`, { headers: { authorization: `Bearer ${token}` } });
    expect(await read.json()).toMatchObject({ managerId: '000123', managerName: 'June Jones' });
    const own = await fetch(`${grant.url}?${grant.token}`, {
      headers: { accept: 'application/json;odata=nometadata' },
    });
    expect(await own.json()).toMatchObject({ employeeId: '000123' });
  });

  test('refuses a second instance on the same data, in one sentence', async () => {
    const { code, said } = await runCommand('start', ['--port', '0', '--data', folder]);
    expect(code).toBe(1);
    expect(said).toMatch(/^An instance runs on .* already, at http:\S+\.\n$/);
  });

  test('of two that start at once on the same data, one becomes ready', async () => {
    const twice = join(folder, 'twice');
    const both = [1, 2].map(() => runCommand('start', ['--port', '0', '--empty', '--data', twice]));
    expect(await Promise.race(both)).toEqual({
      code: 1,
      said: expect.stringMatching(/^An instance runs on .* already, [^\n]*\.\n$/),
    });
    const { pid } = await vi.waitFor(async () => JSON.parse(await readFile(join(twice, 'instance.json'), 'utf8')), {
      timeout: 20_000,
    });
    process.kill(pid, 'SIGTERM');
    expect((await Promise.all(both)).map(({ code }) => code).sort()).toEqual([0, 1]);
  });

  test('keeps what it acknowledged, to the last write, and does not load its sample again', async () => {
    const { stdout: token } = await shell(`npm run -s token -- --role hr --data '${folder}'`);
    const ask = (method: string, path: string, body?: object) =>
      fetch(`${running.url}/api/${path}`, {
        method,
        headers: { authorization: `Bearer ${token.trim()}` },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
    expect((await ask('DELETE', 'employees/Sales/000124')).status).toBe(204);
    const acknowledged: string[] = [];
    const writing = Array.from({ length: 40 }, async (_, index) => {
      const employeeId = String(900_000 + index);
      const email = `late${index}@contoso.com`;
      const answer = await ask('POST', 'employees', {
        department: 'Late',
        employeeId,
        email,
        firstName: 'L',
        lastName: 'Late',
      }).catch(() => undefined);
      if (answer?.status === 201) acknowledged.push(employeeId);
    });
    await writing[0];
    // Ctrl-C, twice, in the middle of it.
    running.child.kill('SIGINT');
    expect(await running.end('SIGINT')).toBe(0);
    await Promise.all(writing);
    expect(acknowledged.length).toBeGreaterThan(0);
    expect(await runCommand('token', ['--role', 'hr', '--data', folder])).toMatchObject({
      code: 1,
      said: expect.stringMatching(/^Nothing runs on [^\n]*\n$/),
    });

    running = await startCommand(['--port', '0', '--data', folder]);
    const { stdout: fresh } = await shell(`npm run -s token -- --role hr --data '${folder}'`);
    const headers = { authorization: `Bearer ${fresh.trim()}` };
    const late = await (await fetch(`${running.url}/api/employees/Late`, { headers })).json();
    const kept = (late as { items: { employeeId: string }[] }).items.map(({ employeeId }) => employeeId);
    expect(kept).toEqual(expect.arrayContaining(acknowledged));
    expect((await fetch(`${running.url}/api/employees/Sales/000124`, { headers })).status).toBe(404);
  });

  test('leaves nothing running when it is killed', async () => {
    const other = join(folder, 'killed');
    const victim = await startCommand(['--port', '0', '--empty', '--data', other]);
    const { tables } = JSON.parse(await readFile(join(other, 'instance.json'), 'utf8'));
    victim.child.kill('SIGKILL');
    const gone = (url: string) =>
      fetch(url).then(
        () => false,
        () => true,
      );
    await vi.waitFor(async () => expect([await gone(victim.url), await gone(tables)]).toEqual([true, true]), {
      timeout: 15_000,
    });
  });

  // In the order in which they are made.
  test.each(['lock', 'azurite', 'identity-key.json'])(
    'asked to stop while it starts, when %s is there, it does not become ready first',
    async (name) => {
      const data = join(folder, `stopped-at-${name}`);
      const child = spawn(process.execPath, ['local/start.ts', '--port', '0', '--data', data], { cwd: ROOT });
      const said = text(child.stdout);
      const complained = text(child.stderr);
      await vi.waitFor(() => access(join(data, name)), { timeout: 10_000, interval: 10 });
      const ended = once(child, 'exit', { signal: AbortSignal.timeout(STOPS_WITHIN_MS) });
      child.kill('SIGTERM');
      expect(await ended).toEqual([0, null]);
      expect([await said, await complained]).toEqual(['', '']);
      expect(await processesOn(data)).toEqual([]);
    },
  );

  test('ends when its data folder is gone, and says that not all is kept', async () => {
    const data = join(folder, 'gone');
    const orphaned = await startCommand(['--port', '0', '--data', data]);
    const { stdout: token } = await shell(`npm run -s token -- --role hr --data '${data}'`);
    await rm(data, { recursive: true });
    // Or there may be nothing to write out. The row is written in memory; the audit log, in a blob, cannot be.
    const body = JSON.stringify({ department: 'Lost' });
    const headers = { authorization: `Bearer ${token.trim()}` };
    expect((await fetch(`${orphaned.url}/api/departments`, { method: 'POST', headers, body })).status).toBe(503);
    const ended = once(orphaned.child, 'close', { signal: AbortSignal.timeout(STOPS_WITHIN_MS) });
    orphaned.child.kill('SIGTERM');
    expect(await ended).toEqual([1, null]);
    expect(orphaned.said()).toMatch(/\nThe storage emulator could not write its data out: [^\n]*\n$/);
    expect(await processesOn(data)).toEqual([]);
  });

  test('says in one sentence what is in its way', async () => {
    const blocker = createServer().listen(0, '127.0.0.1');
    await once(blocker, 'listening');
    const { port } = blocker.address() as { port: number };
    const file = join(folder, 'a-file');
    await writeFile(file, '');
    const fresh = join(folder, 'fresh');
    const [busy, unwritable, wrong] = await Promise.all([
      runCommand('start', ['--port', String(port), '--data', fresh]),
      runCommand('start', ['--port', '0', '--data', join(file, 'below')]),
      runCommand('start', ['--port', '99999', '--data', fresh]),
    ]);
    blocker.close();
    expect(busy).toEqual({ code: 1, said: expect.stringMatching(/^Port \d+ is in use[^\n]*\n$/) });
    expect(unwritable).toEqual({
      code: 1,
      said: expect.stringMatching(/^The folder [^\n]* cannot be written to[^\n]*\n$/),
    });
    expect(wrong).toMatchObject({ code: 1, said: expect.stringContaining('from 0 to 65535') });
  });
});

describe('npm run import', () => {
  test('loads what it can, says what it could not, and has nothing to do the second time', async () => {
    const header = 'employeeId,firstName,lastName,email,department,age\n';
    const good = Array.from(
      { length: 150 },
      (_, index) =>
        `${800_000 + index},Ann,Row${index % 7},row${index}@contoso.com,${index % 3 ? 'Big' : 'Small'},${20 + (index % 40)}\n`,
    );
    const file = join(folder, 'good.csv');
    await writeFile(file, header + good.join(''));
    const first = await runCommand('import', ['employees', file, '--data', folder]);
    expect(first).toEqual({
      code: 0,
      said: expect.stringMatching(/^150 read: 150 created, 0 changed, 0 unchanged, 0 rejected, in [\d.]+ s\.\n$/),
    });
    expect(await runCommand('import', ['employees', file, '--data', folder])).toEqual({
      code: 0,
      said: 'Nothing to do: all 150 are there already.\n',
    });

    const bad = [
      '80015,Ann,A,a@contoso.com,Bad,20\n',
      '800151,Ann,A\n',
      '800152,Ann,"A\nB",row1@contoso.com,Bad,20\n',
      '800153,Ann,A,c@contoso.com,Bad,old\n',
    ];
    const changed = String(good[0]).replace('Ann', 'Anna');
    await writeFile(file, header + [changed, ...bad, '800154,Ann,A,d@contoso.com,Bad,20\n'].join(''));
    const { code, said } = await runCommand('import', ['employees', file, '--data', folder]);
    expect(code).toBe(1);
    expect(said).toMatch(/Line 3: .*employeeId.*six digits/);
    expect(said).toMatch(/Line 4: .*not CSV like its header/);
    expect(said).toMatch(/Line 6: .*email/);
    expect(said).toMatch(/Line 7: .*age/);
    expect(said).toMatch(/6 read: 1 created, 1 changed, 0 unchanged, 4 rejected/);
  });

  test.skipIf(!existsSync(ADVENTURE_WORKS))(
    `loads the employees of AdventureWorks (needs ${ADVENTURE_WORKS})`,
    async () => {
      const arguments_ = ['employees', ADVENTURE_WORKS, '--data', folder];
      const first = await runCommand('import', arguments_);
      expect(first).toEqual({
        code: 0,
        said: expect.stringMatching(/^290 read: 290 created, 0 changed, 0 unchanged, 0 rejected/),
      });
      expect(await runCommand('import', arguments_)).toEqual({
        code: 0,
        said: 'Nothing to do: all 290 are there already.\n',
      });
      const { stdout: token } = await shell(`npm run -s token -- --role reader --data '${folder}'`);
      const ask = async (path: string) =>
        (await fetch(`${running.url}/api/${path}`, { headers: { authorization: `Bearer ${token.trim()}` } })).json();
      expect(await ask('employees/by/emailCompanyWide/fran%C3%A7ois0@adventure-works.com')).toMatchObject({
        firstName: 'François',
      });
      const johnsons = async () => {
        const { items } = (await ask('employees/by/lastNameCompanyWide/Johnson')) as { items: { firstName: string }[] };
        return items.map(({ firstName }) => firstName).sort();
      };
      await vi.waitFor(async () => expect(await johnsons()).toEqual(['Barry', 'David', 'Willis']), { timeout: 10_000 });
    },
  );

  test.skipIf(!existsSync('../shared/data/northwind-orders.csv'))(
    'loads a shop (needs ../shared/data/northwind-*.csv)',
    async () => {
      for (const [entity, count] of [
        ['customers', 91],
        ['products', 77],
        ['orders', 830],
      ] as const) {
        const { code, said } = await runCommand('import', [
          entity,
          `../shared/data/northwind-${entity}.csv`,
          '--data',
          folder,
        ]);
        expect({ code, said }).toEqual({ code: 0, said: expect.stringContaining(`${count} read: ${count} created`) });
      }
      const { stdout: token } = await shell(`npm run -s token -- --role reader --data '${folder}'`);
      const ask = async (path: string) => {
        const answer = await fetch(`${running.url}/api/${path}`, {
          headers: { authorization: `Bearer ${token.trim()}` },
        });
        return (await answer.json()) as { items: { customerId: string }[] };
      };
      expect((await ask('products/1')).items).toHaveLength(12);
      expect((await ask('orders/VINET')).items).toHaveLength(5);
      await vi.waitFor(
        async () =>
          expect((await ask('customers/by/cityAndLastName/London/Devon')).items).toMatchObject([
            { customerId: 'EASTC' },
          ]),
        { timeout: 10_000 },
      );
      await vi.waitFor(async () => expect((await ask('orders/by/date/1998-05-06')).items).toHaveLength(4), {
        timeout: 10_000,
      });
    },
  );

  test('says that a file has no rows', async () => {
    const file = join(folder, 'header.csv');
    await writeFile(file, 'department,description\n');
    expect(await runCommand('import', ['departments', file, '--data', folder])).toEqual({
      code: 0,
      said: `The file ${file} has no rows.\n`,
    });
  });

  test('says in one sentence that a file cannot be read', async () => {
    const folders = ['dir', 'dir.csv', 'dir.csv.gz', 'dir.ndjson'].map((name) => join(folder, name));
    await Promise.all(folders.map((each) => mkdir(each)));
    const packed = gzipSync('\n'.repeat(100_000));
    const broken = ['cut.csv.gz', 'cut.ndjson.gz', 'no-gzip.csv.gz'].map((name) => join(folder, name));
    await Promise.all(
      broken.map((each) => writeFile(each, /cut/.test(each) ? packed.subarray(0, -9) : 'department\n')),
    );
    const paths = [...folders, ...broken];
    const ends = await Promise.all(paths.map((path) => runCommand('import', ['departments', path, '--data', folder])));
    for (const [index, path] of paths.entries())
      expect(ends[index]).toEqual({
        code: 1,
        said: expect.stringMatching(new RegExp(`^The file ${path} cannot be read: [^\\n]+\\.\\n$`)),
      });
  });

  test('refuses what it cannot begin with, in one sentence', async () => {
    const file = join(folder, 'odd.csv');
    await writeFile(file, 'employeeId,salary\n000001,5\n');
    expect(await runCommand('import', ['robots', file, '--data', folder])).toMatchObject({
      code: 1,
      said: expect.stringMatching(/^There is no entity robots[^\n]*\n$/),
    });
    expect(await runCommand('import', ['employees', 'nowhere.csv', '--data', folder])).toMatchObject({
      code: 1,
      said: 'There is no file nowhere.csv.\n',
    });
    expect(await runCommand('import', ['employees', file, '--data', folder])).toMatchObject({
      code: 1,
      said: expect.stringMatching(/^employees has no field salary[^\n]*\n$/),
    });
  });
});

describe('npm run audit and reindex', () => {
  test('find what was broken by hand, repair it, and build an index anew', async () => {
    const run = (name: string, ...words: string[]) => runCommand(name, [...words, '--data', folder]);
    const { said: clean, code } = await run('audit', 'departments');
    expect({ clean, code }).toEqual({
      clean: expect.stringMatching(/^\d+ rows looked at: 0 do not agree\.\n$/),
      code: 0,
    });
    const { tables } = JSON.parse(await readFile(join(folder, 'instance.json'), 'utf8'));
    const { name, key } = EMULATOR_ACCOUNT;
    const account = `DefaultEndpointsProtocol=http;AccountName=${name};AccountKey=${key}`;
    const storage = openStorage({
      connectionString: `${account};TableEndpoint=${tables};QueueEndpoint=${tables};BlobEndpoint=${tables}`,
    });
    const [row] = await Array.fromAsync(storage.table('employeesbyemail').listEntities());
    await storage.table('employeesbyemail').deleteEntity(row?.partitionKey ?? '', row?.rowKey ?? '');
    const broken = await run('audit', 'employees');
    expect(broken.code).toBe(1);
    expect(broken.said).toContain(
      `missing: emailCompanyWide of employeesbyemail/${row?.partitionKey}/${row?.rowKey}\n`,
    );
    const built = await run('reindex', 'employees', 'emailCompanyWide');
    expect(built).toMatchObject({
      code: 0,
      said: expect.stringContaining('1 of 1 that were missing are in the index'),
    });
    expect(await run('audit', 'employees', '--repair')).toMatchObject({
      code: 0,
      said: expect.stringContaining(': 0 do not agree'),
    });
    expect(await run('audit', 'nothing')).toMatchObject({ code: 1 });
  });
});

describe('npm run export', () => {
  test('and import make the same file again, in an empty instance, whatever is in it', async () => {
    const data = join(folder, 'restored');
    const empty = await startCommand(['--port', '0', '--data', data, '--empty']);
    try {
      const token = async (where: string) =>
        (await shell(`npm run -s token -- --role hr --data '${where}'`)).stdout.trim();
      const headers = { authorization: `Bearer ${await token(folder)}`, 'content-type': 'application/json' };
      const odd = {
        department: 'Sales',
        employeeId: '000123',
        year: 2001,
        rating: 1,
        comments: 'é\u2028😀"'.repeat(50_000),
      };
      const put = await fetch(`${running.url}/api/reviews`, { method: 'POST', headers, body: JSON.stringify(odd) });
      expect([201, 409]).toContain(put.status);
      for (const entity of ['employees', 'departments', 'reviews', 'orders', 'movies', 'people']) {
        const [first, second] = [join(folder, `${entity}.ndjson.gz`), join(folder, `${entity}-again.ndjson.gz`)];
        const exported = await runCommand('export', [entity, first, '--data', folder]);
        expect(exported).toMatchObject({ code: 0, said: expect.stringMatching(/^[1-9]\d* of /) });
        expect(await runCommand('import', [entity, first, '--data', data])).toMatchObject({ code: 0 });
        expect(await runCommand('export', [entity, second, '--data', data])).toMatchObject({ code: 0 });
        expect(gunzipSync(await readFile(second)).equals(gunzipSync(await readFile(first))), entity).toBe(true);
        const { said } = await runCommand('import', [entity, second, '--data', data]);
        expect(said, entity).toMatch(/^Nothing to do: all \d+ are there already\.\n$/);
      }
      const people = gunzipSync(await readFile(join(folder, 'employees.ndjson.gz'))).toString();
      expect(people).toContain('"nationalId":"000-00-0123"');
      expect(people).toContain('"photo":{"base64":"iVBOR');
    } finally {
      await empty.end();
    }
  });
});

describe('npm run soak', () => {
  test('has nothing to complain of after some seconds', async () => {
    const { code, said } = await runCommand('soak', ['--seconds', '8', '--callers', '8']);
    expect({ code, said }).toEqual({ code: 0, said: expect.stringMatching(/drift {9}0\nviolations {4}0\n$/) });
    expect(Number(/requests +(\d+)/.exec(said)?.[1])).toBeGreaterThan(200);
  });
});
