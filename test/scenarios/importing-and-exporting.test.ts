import { once } from 'node:events';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PNG } from '../../local/walk/png.ts';
import { IS_HOSTED_IN_PROCESS } from '../host-in-process.ts';
import { baseValues } from '../kit/base.ts';
import { PATIENCE_MS } from '../patience.ts';
import { IS_EVERY_POINT, sampleItems } from '../points.ts';
import { useProduct } from '../product.ts';
import { spawnScript, startCommand } from '../start-process.ts';

const BASE64 = PNG.toString('base64');

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const importing = (...words: string[]) => product.run('import', ...words);

/** Sends a request of HR to the API. */
async function ask(method: string, path: string, body?: object): Promise<Response> {
  const headers = { authorization: `Bearer ${await product.token('hr')}`, 'content-type': 'application/json' };
  return fetch(`${product.url}/api/${path}`, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
}

describe('npm run import', () => {
  test('loads the valid rows, reports the others, and changes nothing the second time', {
    tags: ['slow'],
  }, async () => {
    const header = 'employeeId,firstName,lastName,email,department,age\n';
    const good = Array.from(
      { length: 150 },
      (_, index) =>
        `${800_000 + index},Ann,Row${index % 7},row${index}@contoso.com,${index % 3 ? 'Big' : 'Small'},${20 + (index % 40)}\n`,
    );
    const file = join(product.folder, 'good.csv');
    await writeFile(file, header + good.join(''));
    const first = await importing('employees', file);
    expect(first).toEqual({
      code: 0,
      said: expect.stringMatching(/^150 read: 150 created, 0 stored, 0 unchanged, 0 rejected, in [\d.]+ s\.\n$/),
    });
    expect(await importing('employees', file)).toEqual({
      code: 0,
      said: 'Nothing to do: all 150 rows are already stored.\n',
    });

    const bad = [
      '80015,Ann,A,a@contoso.com,Bad,young\n',
      '800151,Ann,A\n',
      '800152,Ann,"A\nB",row1@contoso.com,Bad,20\n',
      '800153,Ann,A,c@contoso.com,Bad,old\n',
    ];
    const changed = String(good[0]).replace('Ann', 'Anna');
    await writeFile(
      file,
      header + [changed, ...bad, '800154,Ann,A,d@contoso.com,Bad,20\n', '800154,Bo,B,d@contoso.com,Bad,20\n'].join(''),
    );
    const { code, said } = await importing('employees', file);
    expect(code).toBe(1);
    expect(said).toMatch(/Line 3: .*employeeId.*six digits.*; "age" must be/);
    expect(said).toMatch(/Line 4: .*not CSV with the columns of the header/);
    expect(said).toMatch(/Line 6: .*email/);
    expect(said).toMatch(/Line 7: .*age/);
    expect(said).toMatch(/Line 9: the key is that of line 8/);
    expect(said).toMatch(/7 read: 1 created, 1 stored, 0 unchanged, 5 rejected/);
    // A row replaces the whole entity.
    expect(said).toMatch(/no column for ([\w, ]*, )?nationalId.*: the rows that it replaced lost their values/);
    expect(said).not.toMatch(/no column for ([\w, ]*, )?(age|photo|reviewCount)\b/);
    expect(await (await ask('GET', 'employees/Bad/800154')).json()).toMatchObject({ firstName: 'Ann' });
  });

  test('writes nothing of a row that is too large or whose file is not valid, reports the line, and continues', {
    tags: ['slow'],
  }, async () => {
    const file = join(product.folder, 'files.ndjson');
    const row = (index: number, more: object) =>
      JSON.stringify({
        department: 'Files',
        employeeId: `81000${index}`,
        email: `file${index}@contoso.com`,
        firstName: 'Ann',
        lastName: 'A',
        ...more,
      });
    const photo = { base64: BASE64 };
    const lines = [
      row(0, { more: 'x'.repeat(1_100_000) }),
      row(1, { photo: { base64: 'no base64' } }),
      row(2, { photo: { base64: Buffer.from('no picture').toString('base64') } }),
      row(3, { photo: 'none' }),
      '{"cut off',
      row(4, { photo }),
      row(5, {}).replace(/\}$/, `,"jobTitle":${'['.repeat(20_000)}${']'.repeat(20_000)}}`),
    ];
    await writeFile(file, lines.join('\n'));
    const { code, said } = await importing('employees', file);
    expect(code).toBe(1);
    for (const [index, why] of [
      'body is too large',
      '"photo" must be',
      'Unsupported media type for "photo"',
      '"photo" must be',
      'not a JSON object',
    ].entries())
      expect(said).toMatch(new RegExp(`Line ${index + 1}: .*${why}`));
    expect(said).toMatch(/Line 7: .*"jobTitle.*nested at most 100 levels deep/);
    expect(said).toMatch(/7 read: 1 created, 0 stored, 0 unchanged, 6 rejected/);
    // A rejected row must not change the photo of an accepted row.
    await writeFile(file, row(4, { age: -1, photo: { base64: `${BASE64.slice(0, -4)}AAA=` } }));
    expect((await importing('employees', file)).said).toMatch(/Line 1: .*age/);
    const { items } = (await (await ask('GET', 'employees/Files')).json()) as { items: { employeeId: string }[] };
    expect(items.map(({ employeeId }) => employeeId)).toEqual(['810004']);
    const there = await ask('GET', 'employees/Files/810004/photo');
    expect(Buffer.from(await there.arrayBuffer()).toString('base64')).toBe(BASE64);
  });

  test('uploads the files that a column names, skips those that are stored already, and lists those it rejects', async () => {
    const folder = join(product.folder, 'photos');
    await mkdir(join(folder, 'more'), { recursive: true });
    const png = (extra: number) => Buffer.concat([PNG, Buffer.alloc(extra)]);
    await writeFile(join(product.folder, 'secret.png'), png(0));
    await symlink(join(product.folder, 'secret.png'), join(folder, 'link.png'));
    await writeFile(join(folder, 'no-picture.png'), 'no picture');
    await writeFile(join(folder, 'large.png'), png(5_000_000));
    const names = Array.from({ length: 20 }, (_, index) => (index % 2 ? `more/${index}.png` : `${index}`));
    for (const [index, name] of names.entries()) await writeFile(join(folder, name), png(index));
    const wrong = [
      'no-picture.png',
      'large.png',
      'missing.png',
      '../secret.png',
      'link.png',
      join(folder, '..', 'secret.png'),
    ];
    const file = join(product.folder, 'with-files.csv');
    const departments = ['Shelved', 'Filed', 'Stored', 'Framed'];
    const departmentOf = (index: number) => departments[index % departments.length];
    const row = (photo: string, index: number) =>
      `${820_000 + index},Ann,A,photo${index}@contoso.com,${departmentOf(index)},${photo}\n`;
    const header = 'employeeId,firstName,lastName,email,department,photo\n';
    await writeFile(file, header + [...names, ...wrong].map(row).join(''));

    // The requests that are under way: those of batches, and those of the files of each batch.
    const flights = new Map<string, { now: number; most: number }>();
    const counted = IS_HOSTED_IN_PROCESS ? ['POST', ...departments] : [];
    const send = globalThis.fetch;
    // One limit for all requests: a command with fewer of them ends before the test does.
    const end = performance.now() + PATIENCE_MS / 2;
    globalThis.fetch = async (input, init) => {
      const name = init?.method === 'PUT' ? String(input).split('/').at(-3) : init?.method;
      const flight = flights.get(name ?? '') ?? { now: 0, most: 0 };
      flights.set(name ?? '', flight);
      flight.now += 1;
      flight.most = Math.max(flight.most, flight.now);
      // Waits for as many as are expected, and for one too many.
      while (counted.includes(name ?? '') && flight.most < 4 && performance.now() < end) await turn();
      for (let count = 0; count < 1_000; count += 1) await turn();
      return send(input, init).finally(() => {
        flight.now -= 1;
      });
    };
    onTestFinished(() => {
      globalThis.fetch = send;
    });
    const first = await importing('employees', file, '--files', folder);
    globalThis.fetch = send;
    // Otherwise the command is a process of its own.
    for (const name of counted) expect(flights.get(name)?.most, name).toBe(4);
    expect(first.code).toBe(1);
    for (const [index, why] of [
      'no-picture.png: Unsupported media type for "photo"',
      'large.png: "photo" is too large',
      '"photo": the file missing.png was not found in',
      '"photo": the file ../secret.png was not found in',
      '"photo": the file link.png was not found in',
      'secret.png was not found in',
    ].entries())
      expect(first.said).toMatch(new RegExp(`Line ${names.length + 2 + index}: .*${why}`));
    expect(first.said).toMatch(/26 read: 20 created, 0 stored, 0 unchanged, 6 rejected/);
    expect(first.said).toMatch(/Files: 20 uploaded, 0 unchanged\./);
    const photo = async (index: number) => {
      const path = `employees/${departmentOf(index)}/${820_000 + index}/photo`;
      return Buffer.from(await (await ask('GET', path)).arrayBuffer());
    };
    for (const index of names.keys()) expect((await photo(index)).equals(png(index)), `${index}`).toBe(true);

    await writeFile(file, header + names.map(row).join(''));
    expect(await importing('employees', file, '--files', folder)).toEqual({
      code: 0,
      said: 'Nothing to do: all 20 rows and 20 files are already stored.\n',
    });
    await writeFile(join(folder, '0'), png(100));
    // This photo is uploaded directly to storage, so its ETag is its MD5.
    const uploads = `employees/Filed/820001/photo/uploads`;
    const { url, headers, uploadId } = (await (
      await ask('POST', uploads, { type: 'image/png', bytes: png(200).length })
    ).json()) as { url: string; headers: Record<string, string>; uploadId: string };
    expect((await fetch(url, { method: 'PUT', headers, body: png(200) })).status).toBe(201);
    expect((await ask('POST', `${uploads}/${uploadId}`)).status).toBe(200);
    await writeFile(join(folder, 'more/1.png'), png(200));
    const changed = await importing('employees', file, '--files', folder);
    expect(changed.said).toMatch(/20 read: 0 created, 0 stored, 20 unchanged, 0 rejected/);
    expect(changed.said).toMatch(/Files: 1 uploaded, 19 unchanged\./);
    expect((await photo(0)).equals(png(100))).toBe(true);

    expect((await importing('employees', file)).said).toMatch(/Line 2: "photo" must be .* in the folder of --files/);
    expect(await importing('employees', file, '--files', join(folder, 'none'))).toEqual({
      code: 1,
      said: expect.stringMatching(/^Folder .*none not found\.\n$/),
    });
  });

  test('does not claim that rows of an entity that is one row were replaced', { tags: ['slow'] }, async () => {
    const file = join(product.folder, 'people.csv');
    await writeFile(file, 'kind,country,personId,firstName,jobTitle\nemployee,NO,e-1,June,Clerk\n');
    const { code, said } = await importing('people', file);
    expect([code, said.split('\n').slice(1)]).toEqual([
      0,
      [
        expect.stringMatching(
          /^The file has no column for [\w, ]+\. The API does not tell whether a row existed: those that did lost their values/,
        ),
        '',
      ],
    ]);
    expect((await ask('DELETE', 'people/NO/e-1')).status).toBe(204);
  });

  test('reports a file without rows', { tags: ['slow'] }, async () => {
    const file = join(product.folder, 'header.csv');
    await writeFile(file, 'department,description\n');
    expect(await importing('departments', file)).toEqual({
      code: 0,
      said: `The file ${file} has no rows.\n`,
    });
  });

  test('reports an unreadable file in one sentence', { tags: ['slow'] }, async () => {
    const folders = ['dir', 'dir.csv', 'dir.csv.gz', 'dir.ndjson'].map((name) => join(product.folder, name));
    await Promise.all(folders.map((each) => mkdir(each)));
    const packed = gzipSync('\n'.repeat(100_000));
    const broken = ['cut.csv.gz', 'cut.ndjson.gz', 'no-gzip.csv.gz'].map((name) => join(product.folder, name));
    await Promise.all(
      broken.map((each) => writeFile(each, /cut/.test(each) ? packed.subarray(0, -9) : 'department\n')),
    );
    const paths = [...sampleItems(folders, 'unreadable folder'), ...sampleItems(broken, 'unreadable file')];
    const ends = await Promise.all(paths.map((path) => importing('departments', path)));
    for (const [index, path] of paths.entries())
      expect(ends[index]).toEqual({
        code: 1,
        said: expect.stringMatching(new RegExp(`^The file ${path} cannot be read: [^\\n]+\\.\\n$`)),
      });
  });

  test('rejects wrong arguments in one sentence', { tags: ['slow'] }, async () => {
    const file = join(product.folder, 'odd.csv');
    await writeFile(file, 'employeeId,salary\n000001,5\n');
    expect(await importing('robots', file)).toMatchObject({
      code: 1,
      said: expect.stringMatching(/^Entity "robots" not found; [^\n]*\n$/),
    });
    expect(await importing('employees', 'nowhere.csv')).toMatchObject({
      code: 1,
      said: 'File nowhere.csv not found.\n',
    });
    const rows = join(product.folder, 'departments.csv');
    await writeFile(rows, 'department\nSales\n');
    expect(await importing('departments', rows, '--token', await product.token('reader'))).toEqual({
      code: 1,
      said: expect.stringMatching(/^The API at \S+ rejected 1 rows with status 403: The request requires [^\n]*\n$/),
    });
    expect(await importing('employees', file)).toMatchObject({
      code: 1,
      said: expect.stringMatching(/^The header has columns that are not fields of employees: salary\.\n$/),
    });
  });
});

const review = { department: 'Sales', employeeId: '000123', rating: 1 };
/** An entity of each form, in an order in which they can be created. */
const EVERYTHING = [
  [
    'employees',
    {
      department: 'Sales',
      employeeId: '000123',
      email: 'jonesj@contoso.com',
      firstName: 'June',
      lastName: 'Jones',
      nationalId: '000-00-0123',
    },
  ],
  ['departments', { department: 'Sales', managerId: '000123' }],
  ['reviews', { ...review, year: 2001, comments: 'é\u2028😀"'.repeat(50_000) }],
  // More than the API accepts in a body without a large text.
  ['reviews', { ...review, year: 2002, comments: '"ß'.repeat(700_000) }],
  ['customers', { city: 'London', customerId: 'HARBR', companyName: 'Harbour Teas' }],
  ['orders', { customerId: 'HARBR', orderId: 10_001, orderDate: '2026-11-19' }],
  ['movies', { title: 'The Kid', year: 1921, genres: ['Comedy'], cast: ['Charlie Chaplin', 'Jackie Coogan'] }],
  ['people', { kind: 'employee', country: 'UK', personId: 'e-1', firstName: 'June', jobTitle: 'Clerk' }],
  ['people', { kind: 'customer', country: 'UK', personId: 'c-1', firstName: 'Ada', companyName: 'Harbour Teas' }],
] as const;

describe('npm run import of rows without a field of the key', () => {
  test('changes nothing the second time if the field is computed from others, also after a change of these', {
    tags: ['slow'],
  }, async () => {
    const file = join(product.folder, 'films.ndjson');
    const film = { title: 'Sunnyside', year: 1919, genres: ['Western'], cast: ['Edna Purviance'] };
    await writeFile(file, JSON.stringify(film));
    expect(await importing('movies', file)).toMatchObject({ said: expect.stringContaining(' 1 created, ') });
    const nothing = { code: 0, said: 'Nothing to do: all 1 rows are already stored.\n' };
    expect(await importing('movies', file)).toEqual(nothing);
    const { body } = await hr('GET', '/api/movies/Western');
    const path = `/api/movies/Western/Sunnyside/1919/${body.items[0].filmId}`;
    expect((await hr('PATCH', path, { body: { cast: ['Tom Wood'] } })).status).toBe(200);
    // The row has the key of the film, which gets the cast of the file again.
    expect(await importing('movies', file)).toMatchObject({ said: expect.stringContaining(' 0 created, 1 stored, ') });
    expect(await importing('movies', file)).toEqual(nothing);
    expect((await hr('GET', path)).body).toMatchObject(film);
  });

  const claim = (employeeId: string, amount: number) =>
    `${JSON.stringify({ employeeId, at: '2026-11-20T08:00:00Z', amount, category: 'Travel' })}\n`;
  const amountsOf = async (employeeId: string) =>
    ((await hr('GET', `/api/expenses/${employeeId}?top=1000`)).body.items as { amount: number }[])
      .map(({ amount }) => amount)
      .toSorted((one, other) => one - other);

  test('changes nothing the second time if the field is generated, and says how long', { tags: ['slow'] }, async () => {
    const file = join(product.folder, 'expenses.ndjson');
    // Two claims are equal on purpose.
    const rows = [1, 2, 2, 3].map((amount) => claim('000777', amount));
    await writeFile(file, rows.join(''));
    const said = expect.stringMatching(
      / 0 rejected, .*\nThe API generated claimId of rows without a value\. It knows these rows for a day, in a file of this name: importing them again changes nothing until then, and later creates their entities a second time\.\n$/,
    );
    expect(await importing('expenses', file)).toEqual({ code: 0, said });
    expect(await importing('expenses', file)).toEqual({ code: 0, said });
    expect(await amountsOf('000777')).toEqual([1, 2, 2, 3]);
    // An edited row is another one, and the others are recognized on other lines.
    await writeFile(file, [rows[3], rows[2], claim('000777', 4), rows[1], rows[0]].join(''));
    expect(await importing('expenses', file)).toEqual({ code: 0, said });
    expect(await amountsOf('000777')).toEqual([1, 2, 2, 3, 4]);
    const other = join(product.folder, 'more-expenses.ndjson');
    await writeFile(other, rows[0] ?? '');
    expect(await importing('expenses', other)).toEqual({ code: 0, said });
    expect(await amountsOf('000777')).toEqual([1, 1, 2, 2, 3, 4]);
  });

  test('creates an entity for each row after a lost reply, and after its end before the reply', {
    tags: ['slow'],
  }, async () => {
    // The first command is killed at its second attempt.
    const lost = IS_EVERY_POINT ? 2 : 1;
    let batches = 0;
    let onLast = () => {};
    const proxy = createServer(async (request, response) => {
      const { url = '', method = 'GET', headers } = request;
      const body = await buffer(request);
      const sent = baseValues.pick(headers, ['authorization', 'content-type', 'idempotency-key']) as Record<
        string,
        string
      >;
      const reply = await fetch(product.url + url, { method, headers: sent, body: new Uint8Array(body) });
      batches += 1;
      if (batches > lost) {
        const text = await reply.text();
        response.writeHead(reply.status, { 'content-type': 'application/json' }).end(text);
        return;
      }
      if (batches === lost) onLast();
      request.socket.destroy();
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void proxy.close());
    await once(proxy, 'listening');
    const { port } = proxy.address() as AddressInfo;
    const file = join(product.folder, 'claims.ndjson');
    const amounts = Array.from({ length: 30 }, (_, index) => index % 20).toSorted((one, other) => one - other);
    await writeFile(file, amounts.map((amount) => claim('000778', amount)).join(''));
    const words = ['expenses', file, '--url', `http://127.0.0.1:${port}`, '--token', await product.token('hr')];
    if (IS_EVERY_POINT) {
      const { child } = spawnScript('local/commands/import.ts', [...words, '--data', product.folder]);
      onLast = () => child.kill('SIGKILL');
      expect(await once(child, 'close')).toEqual([null, 'SIGKILL']);
    }
    expect(await importing(...words)).toMatchObject({ code: 0 });
    expect(batches).toBeGreaterThan(lost);
    expect(await amountsOf('000778')).toEqual(amounts);
  });
});

describe('npm run export', () => {
  test('exports the rows of all kept periods', { tags: ['slow'] }, async () => {
    const file = join(product.folder, 'logins.ndjson');
    const at = [0, 1, 40].map((days) => new Date(Date.now() - days * 86_400_000).toISOString());
    for (const instant of at)
      expect((await ask('POST', 'logins', { employeeId: '000555', at: instant, succeeded: true })).status).toBe(201);
    expect(await product.run('export', 'logins', file)).toMatchObject({ code: 0 });
    const lines = (await readFile(file, 'utf8')).trim().split('\n');
    const own = lines.map((line) => JSON.parse(line)).filter(({ employeeId }) => employeeId === '000555');
    expect(own.map((login) => login.at)).toEqual(at.toReversed());
    expect((await product.run('import', 'logins', file)).said).toMatch(/0 created,/);
  });

  test('writes a file that npm run import loads into an empty instance without a difference', {
    tags: ['slow'],
  }, async () => {
    const { folder } = product;
    const empty = await startCommand(join(folder, 'restored'), ['--empty']);
    try {
      for (const [path, body] of EVERYTHING) {
        const { status } = await ask('POST', path, body);
        expect([path, status]).toEqual([path, 201]);
      }
      const photo = { method: 'PUT', headers: { authorization: `Bearer ${await product.token('hr')}` } };
      const bytes = new Uint8Array(PNG);
      const put = await fetch(`${product.url}/api/employees/Sales/000123/photo`, { ...photo, body: bytes });
      expect(put.ok).toBe(true);
      // A review needs its employee, and an order its customer.
      const groups = [
        ['employees', 'reviews'],
        ['employees', 'departments'],
        ['customers', 'orders'],
        ['movies'],
        ['people'],
      ];
      const entities = [...new Set(sampleItems(groups, 'exported').flat())];
      for (const entity of entities) {
        const [first, second] = [join(folder, `${entity}.ndjson.gz`), join(folder, `${entity}-again.ndjson.gz`)];
        const exported = await product.run('export', entity, first);
        expect(exported).toMatchObject({ code: 0, said: expect.stringMatching(/^Exported [1-9]\d* /) });
        expect(await empty.run('import', entity, first)).toMatchObject({ code: 0 });
        expect(await empty.run('export', entity, second)).toMatchObject({ code: 0 });
        expect(gunzipSync(await readFile(second)).equals(gunzipSync(await readFile(first))), entity).toBe(true);
        const { said } = await empty.run('import', entity, second);
        // Rows of an entity that is one row are stored without a read, so that an import cannot tell what changes.
        const nothing =
          entity === 'people'
            ? /^2 read: 0 created, 2 stored,/
            : /^Nothing to do: all \d+ rows( and \d+ files)? are already stored\.\n$/;
        expect(said, entity).toMatch(nothing);
      }
      if (!entities.includes('employees')) return;
      const people = gunzipSync(await readFile(join(folder, 'employees.ndjson.gz'))).toString();
      expect(people).toContain('"nationalId":"000-00-0123"');
      expect(people).toContain('"photo":{"base64":"iVBOR');
    } finally {
      await empty.end();
    }
  });

  test('keeps every field of entities that take several rows', { tags: ['slow'] }, async () => {
    const { folder, run } = product;
    const measured = (count: number, value: string) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`m${String(index).padStart(3, '0')}`, value]));
    const rows = ['A', 'B', 'C'].map((inspectionId, index) => {
      const long = measured(30 + 20 * index, 'y'.repeat(30_000));
      return { plant: 'Bergen', inspectionId, ...measured(300, 'ok'), ...long };
    });
    const [file, exported] = [join(folder, 'inspections.ndjson'), join(folder, 'inspected.ndjson')];
    await writeFile(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    expect((await importing('inspections', file)).said).toMatch(/3 read: 3 created/);
    expect(await run('export', 'inspections', exported)).toMatchObject({ code: 0 });
    const lines = (await readFile(exported, 'utf8')).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual(rows);
    expect((await importing('inspections', exported)).said).toMatch(/all 3 rows are already stored/);
  });

  test('omits entities that are deleted while it writes', async () => {
    const photo = { blob: 'b', type: 'image/png', bytes: 1, sha256: 'x' };
    const one = (employeeId: string) => ({ department: 'Sales', employeeId });
    const answers: Record<string, unknown> = {
      '/api/operations/scan/employees?top=200': { items: ['1', '2', '3'].map((id) => ({ ...one(id), photo })) },
      '/api/employees/Sales/1/photo': 'bytes',
      '/api/employees/Sales/3': one('3'),
    };
    const server = createServer(({ url = '' }, response) =>
      response.writeHead(url in answers ? 200 : 404).end(JSON.stringify(answers[url] ?? {})),
    ).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const file = join(product.folder, 'beside.ndjson');
    const remote = ['--url', `http://127.0.0.1:${port}`, '--token', 'x'];
    const { code } = await product.run('export', 'employees', file, ...remote);
    expect(code).toBe(0);
    const lines = (await readFile(file, 'utf8')).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { ...one('1'), photo: { base64: Buffer.from('"bytes"').toString('base64') } },
      one('3'),
    ]);
  });

  test('marks a row of an unknown kind or without a key, and fails', async () => {
    const one = { country: 'UK', personId: 'c-1', firstName: 'Ann', kind: 'robot' };
    const server = createServer((_, response) => response.end(JSON.stringify({ items: [one, {}] })));
    server.listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const file = join(product.folder, 'marked.ndjson');
    const remote = ['--url', `http://127.0.0.1:${port}`, '--token', 'x'];
    const { code, said } = await product.run('export', 'people', file, ...remote);
    expect(code).toBe(1);
    expect(said).toContain('people "UK/c-1": "kind" cannot be read.\n');
    const lines = (await readFile(file, 'utf8')).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { ...one, kind: null },
      { country: null, personId: null, kind: null },
    ]);
  });

  test('goes on without a file that is lost and a value of another type, and fails', { tags: ['slow'] }, async () => {
    const one = { department: 'Lostfile', firstName: 'Ann', lastName: 'A' };
    for (const id of ['831001', '831002', '831003']) {
      const employee = { ...one, employeeId: id, email: `${id}@contoso.com` };
      expect((await ask('POST', 'employees', employee)).status).toBe(201);
    }
    const headers = { authorization: `Bearer ${await product.token('hr')}`, 'content-type': 'image/png' };
    const photo = await fetch(`${product.url}/api/employees/Lostfile/831001/photo`, {
      method: 'PUT',
      headers,
      body: PNG,
    });
    expect(photo.ok).toBe(true);
    const table = product.storage.table('employees');
    const row = await table.getEntity<{ photo: string }>('Lostfile', 'empid_831001');
    await product.storage.container('photos').deleteBlob(JSON.parse(row.photo).blob);
    await table.updateEntity({ partitionKey: 'Lostfile', rowKey: 'empid_831002', phone: 5 }, 'Merge');
    const get = await ask('GET', 'employees/Lostfile/831002');
    expect([get.status, await get.json()]).toEqual([
      503,
      expect.objectContaining({ code: 'needs-repair', field: 'phone' }),
    ]);
    const file = join(product.folder, 'lost-file.ndjson');
    const { code, said } = await product.run('export', 'employees', file);
    expect(code).toBe(1);
    expect(said).toContain('employees "Lostfile/831001": "photo" cannot be read.\n');
    expect(said).toContain('employees "Lostfile/831002": "phone" cannot be read.\n');
    expect(said).toContain('The file is not complete. Values that cannot be read, and are null in the file: 2.\n');
    const lines = (await readFile(file, 'utf8')).trim().split('\n');
    const exported = lines.map((line) => JSON.parse(line)).filter(({ department }) => department === 'Lostfile');
    expect(exported).toEqual([
      expect.objectContaining({ employeeId: '831001', photo: null }),
      expect.objectContaining({ employeeId: '831002', phone: null }),
      expect.objectContaining({ employeeId: '831003' }),
    ]);
    const imported = await product.run('import', 'employees', file);
    expect(imported.code).toBe(1);
    expect(imported.said).toMatch(/Line \d+: "photo" must be .*\n/);
    expect(imported.said).toMatch(/"phone" must be a string; got null/);
    for (const words of [
      ['verify', 'employees', '--repair'],
      ['reindex', 'employees', 'emailCompanyWide'],
    ]) {
      const ended = await product.run(...(words as [string, ...string[]]));
      expect(ended.code).toBe(1);
      expect(ended.said).toMatch(
        /invalid: employees of employees\/Lostfile\/empid_831002 \(#[0-9a-f]{10}\): The field "phone"/,
      );
      expect(ended.said).toMatch(/\d+ rows checked/);
    }
    for (const id of ['831001', '831002', '831003'])
      expect((await ask('DELETE', `employees/Lostfile/${id}`)).status).toBe(204);
    expect((await product.run('verify', 'employees')).said).toMatch(/0 do not agree/);
  });

  test('names each value that it cannot read, and fails', { tags: ['slow'] }, async () => {
    const one = {
      department: 'Lost',
      employeeId: '830000',
      firstName: 'Ann',
      lastName: 'A',
      email: 'lost@contoso.com',
    };
    expect((await ask('POST', 'employees', { ...one, nationalId: '000-00-0830' })).status).toBe(201);
    const damaged = { partitionKey: 'Lost', rowKey: 'empid_830000', nationalId: 'v1.garbage' };
    await product.storage.table('employees').updateEntity(damaged, 'Merge');
    const file = join(product.folder, 'damaged.ndjson');
    const { code, said } = await product.run('export', 'employees', file);
    expect(code).toBe(1);
    expect(said).toContain('employees "Lost/830000": "nationalId" cannot be read.\n');
    expect(said).toContain('The file is not complete. Values that cannot be read, and are null in the file: 1.\n');
    const lines = (await readFile(file, 'utf8')).split('\n');
    const line = lines.findIndex((text) => text.includes('"830000"'));
    await writeFile(file, `${lines[line]}\n`);
    expect(await importing('employees', file)).toMatchObject({
      code: 1,
      said: expect.stringMatching(/^Line 1: .*nationalId.*null/),
    });
  });
});
