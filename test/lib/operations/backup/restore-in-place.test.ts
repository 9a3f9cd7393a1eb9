// @module-tag long

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, intraPartitionIndex } from '../../../../lib/define.ts';
import { RowkeyError } from '../../../../lib/index.ts';
import { PNG } from '../../../../local/walk/png.ts';
import { openBackedUp } from '../../../backed-up.ts';
import { type Engine, engineRead, engineTransfer, engineWrite } from '../../../kit/engine.ts';
import { featureFiles } from '../../../kit/features.ts';
import { operationsBackup, operationsCheck } from '../../../kit/operations.ts';
import { storageBlobs, storageRows } from '../../../kit/storage.ts';

const access = { read: ['clerk'], write: ['clerk'] } as const;
const personId = z.string().regex(/^\d{3}$/);
const declaredPeople = defineEntity('people', {
  schema: z.object({
    team: z.string(),
    personId,
    email: z.string(),
    town: z.string().optional(),
    secret: z.string().optional(),
    resume: z.string().optional(),
    story: z.string().max(500_000).optional(),
  }),
  table: 'people',
  key: { partition: '{team}', row: 'id_{personId}' },
  indexes: {
    email: interPartitionIndex({
      table: 'peoplebyemail',
      partition: '{email#}',
      row: '{email}',
      unique: true,
      copies: 'keys',
    }),
    town: intraPartitionIndex({ row: 'town_{town}_{personId}', copies: ['email'] }),
  },
  encrypted: ['secret'],
  large: ['story'],
  split: { text: ['resume'] },
  attachments: { photo: { container: 'faces', maxBytes: 1_000_000, types: ['image/png'] } },
  movable: ['team'],
  archive: { table: 'formerpeople' },
  access: { ...access, restricted: { secret: ['clerk'] } },
});
const declaredPets = defineEntity('pets', {
  schema: z.object({ team: z.string(), personId, petName: z.string(), legs: z.int32() }),
  table: 'people',
  key: { partition: '{team}', row: 'id_{personId}_{petName}' },
  childOf: declaredPeople,
  access,
});
const declaredNotes = defineEntity('notes', {
  schema: z.object({
    ownerId: z.string(),
    noteId: z.string(),
    text: z.string(),
    until: z.iso.datetime().optional(),
  }),
  table: 'notes',
  key: { partition: '{ownerId}', row: '{noteId}' },
  expiry: { at: 'until' },
  ofUser: { ownerId: 'delete' },
  access,
});
/** Has the number of people in its partition. */
const declaredTeams = defineEntity('teams', {
  schema: z.object({ team: z.string(), motto: z.string().optional(), size: z.int32().optional() }),
  table: 'people',
  key: { partition: '{team}', row: 'team' },
  counts: { size: declaredPeople },
  access,
});
const model = defineModel({
  roles: ['clerk', 'operator'],
  operatorRole: 'operator',
  entities: [declaredTeams, declaredPeople, declaredPets, declaredNotes],
});
const [teams, people, pets, notes] = model.list as [Entity, Entity, Entity, Entity];
const archive = people.archive as Entity;
type Entity = (typeof model.list)[number];
type Values = Readonly<Record<string, unknown>>;

/** With an engine that knows that there is a backup. */
async function open() {
  const app = await openBackedUp(model);
  const past = { days: 35, roles: [], open: async () => app.engine };
  return { ...app, engine: { ...app.engine, past } satisfies Engine };
}
type App = Awaited<ReturnType<typeof open>>;

/** What a caller sees of every entity, by its place. */
async function everything({ engine, storage }: Pick<App, 'engine' | 'storage'>): Promise<Record<string, Values>> {
  const seen: Record<string, Values> = {};
  const kinds: [string, Entity][] = [...model.list, archive].map((entity) => [entity.name, entity]);
  for (const table of ['people', 'formerpeople']) {
    const { rows } = await storageRows.scanTable(storage, { table, limit: 100_000 });
    for (const row of rows) {
      const kind = kinds.find(([name]) => name === row.properties.EntityType)?.[1];
      const live = kind && engineRead.entityIn({ ...kind, table }, row);
      if (!kind || !live) continue;
      const { photo, ...values } = await engineWrite.toPlain(engine, kind, live.values);
      const at = { entity: kind, key: values, field: 'photo' };
      const file = photo as Parameters<typeof featureFiles.readAttachment>[2] | undefined;
      const bytes = file ? await featureFiles.readAttachment(engine, at, file) : undefined;
      seen[`${table} ${row.partition} ${row.row}`] = { ...values, ...(bytes ? { photo: bytes.toString('hex') } : {}) };
    }
  }
  return seen;
}

const kindsOf = (entity: Entity) => [entity, ...entity.children];
interface Options {
  readonly only?: readonly Entity[];
  readonly partition?: string;
  readonly row?: string;
  /** The rows of a page. */
  readonly top?: number;
  /** Called between the comparison and the restore. */
  readonly between?: () => Promise<void>;
}

async function compare({ engine }: App, at: string, options: Options = {}) {
  const { only = [teams, people, archive], partition, row, top = 3 } = options;
  const found: Awaited<ReturnType<typeof operationsBackup.compareWithPast>>['items'] = [];
  for (const entity of only) {
    let after: Parameters<typeof operationsBackup.compareWithPast>[2]['after'];
    do {
      const selection = { kinds: kindsOf(entity), at };
      const page = await operationsBackup.compareWithPast(engine, selection, { partition, row, after, top });
      found.push(...page.items);
      after = page.next;
    } while (after);
  }
  return found;
}

/** As the command does: parents first, and again what failed while something is restored. */
async function restore(app: App, at: string, options: Options = {}) {
  const differences = await compare(app, at, options);
  await options.between?.();
  const failed = new Map<string, string>();
  for (const entity of options.only ?? [teams, people, archive]) {
    const kinds = kindsOf(entity);
    const archived = entity.isArchive ? kindsOf(people) : undefined;
    let left = kinds.flatMap((kind) => differences.filter((each) => each.entity === kind));
    for (let before = Number.POSITIVE_INFINITY; left.length < before && left.length > 0; ) {
      before = left.length;
      const again: typeof left = [];
      for (let first = 0; first < left.length; first += 5) {
        const some = left.slice(first, first + 5);
        const chosen = some.map(({ entity: kind, address, version }) => ({ entity: kind.name, ...address, version }));
        const done = await operationsBackup.restoreInPlace(app.engine, { kinds, archived, at }, chosen);
        expect(done).toHaveLength(some.length);
        for (const [index, each] of some.entries()) {
          const { error } = done[index] ?? {};
          failed.delete(nameOf(each));
          if (error) failed.set(nameOf(each), error.code);
          if (error && error.code !== 'etag-mismatch') again.push(each);
        }
      }
      left = again;
    }
  }
  await app.settle();
  return {
    differences: differences.map((each) => `${each.change} ${nameOf(each)}`),
    failed: Object.fromEntries(failed),
  };
}

const nameOf = ({ entity, address }: Awaited<ReturnType<typeof compare>>[number]) =>
  `${entity.name} ${address.partition} ${address.row}`;

async function check({ engine }: App) {
  const found: unknown[] = [];
  for (const entity of [...model.list, archive].filter(operationsCheck.canVerify)) {
    const options = { repair: false, top: 1_000, maxTransactions: Number.POSITIVE_INFINITY, patience: 0 } as const;
    found.push(...(await operationsCheck.verifyPage(engine, entity, options)).findings);
  }
  return found;
}

/** A generator of numbers below a limit, the same for the same seed. */
function numbers(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Changes entities as callers do. A person who exists takes a new address only, and a new one may take one that is free. */
function createWalk(app: App, seed: number) {
  const { engine } = app;
  const below = numbers(seed);
  const free: string[] = [];
  let made = 0;
  const ignored = (work: Promise<unknown>) =>
    work.catch((error: unknown) => {
      if (!(error instanceof RowkeyError)) throw error;
    });
  const chosen = async (entity: Entity) => {
    const { rows } = await storageRows.scanTable(app.storage, { table: 'people', type: entity.name, limit: 1_000 });
    const found = rows.flatMap((row) => engineRead.entityIn(entity, row)?.values ?? []);
    return found[below(found.length)] as { team: string; personId: string; email: string; photo?: unknown } | undefined;
  };
  const team = () => ['a', 'b', 'c'][below(3)] ?? '';
  const story = () => String(below(10)).repeat(below(2) === 0 ? 100 : LONG.length);
  const create = () => {
    made += 1;
    const email = (below(2) === 0 && free.shift()) || `${made}@x`;
    const values = {
      team: team(),
      personId: String(made).padStart(3, '0'),
      email,
      town: `t${below(3)}`,
      secret: `s${made}`,
    };
    return engineWrite.createEntity(engine, people, below(3) === 0 ? { ...values, story: story() } : values);
  };
  const steps: (() => Promise<unknown>)[] = [
    create,
    create,
    async () => {
      const one = await chosen(people);
      made += 1;
      if (!one) return;
      const changes = [
        { town: `t${below(3)}` },
        { email: `${made}@x` },
        { story: story() },
        { story: null },
        { resume: `r${below(9)}` },
        { town: null },
      ];
      const change = changes[below(changes.length)] ?? {};
      await engineWrite.patchEntity(engine, people, one, change);
      if ('email' in change) free.push(one.email);
    },
    async () => {
      const one = await chosen(people);
      if (!one) return;
      await engineWrite.deleteEntity(engine, people, one);
      free.push(one.email);
    },
    // The clock of a signature, with which storage copies a file, is not that of the test.
    async () => {
      const one = await chosen(people);
      if (one && !one.photo) await engineTransfer.requestMove(engine, people, one, { team: team() });
    },
    async () => {
      const one = await chosen(people);
      if (one && !one.photo && below(2) === 0) await engineTransfer.requestArchive(engine, people, one);
    },
    async () => {
      const one = await chosen(people);
      if (!one) return;
      const at = { entity: people, key: one, field: 'photo' };
      if (below(3) > 0) await featureFiles.putAttachment(engine, at, Buffer.concat([PNG, Buffer.from([below(256)])]));
      else await featureFiles.removeAttachment(engine, at);
    },
    async () => {
      const one = await chosen(people);
      const pet = { team: one?.team, personId: one?.personId, petName: `p${below(3)}`, legs: below(9) };
      if (one) await engineWrite.putEntity(engine, pets, pet, pet);
    },
    async () => {
      const one = await chosen(pets);
      if (one) await engineWrite.deleteEntity(engine, pets, one);
    },
    () => {
      const values = { team: team(), motto: `m${below(9)}` };
      return engineWrite.putEntity(engine, teams, values, values);
    },
  ];
  return async (count: number) => {
    for (let number = 0; number < count; number += 1) {
      app.advance(10);
      await ignored((steps[below(steps.length)] ?? steps[0])?.() ?? Promise.resolve());
      await app.settle();
    }
  };
}

describe('a restore in place', () => {
  test.each([1, 2, 3])(
    'after a walk of changes has everything as it was, and finds nothing the next time: %i',
    { tags: ['slow'] },
    async (seed) => {
      const app = await open();
      const walk = createWalk(app, seed);
      await walk(30);
      await app.snapshot();
      await app.copyBlobs();
      await walk(15);
      const at = app.cut();
      const before = await everything(app);
      await walk(40);
      const after = await everything(app);
      const differences = await compare(app, at);
      expect(new Set(differences.map(({ change }) => change))).toEqual(new Set(['create', 'replace', 'delete']));
      // A comparison changes nothing.
      expect(await everything(app)).toEqual(after);
      const { failed } = await restore(app, at);
      expect(failed).toEqual({});
      expect(await everything(app)).toEqual(before);
      expect(await check(app)).toEqual([]);
      expect(await compare(app, at)).toEqual([]);
    },
  );

  test('keeps what was written after the comparison, and names it', async () => {
    const app = await open();
    const { engine } = app;
    for (const id of ['001', '002', '003', '004']) await engineWrite.createEntity(engine, people, person(id));
    const photo = { entity: people, key: person('001'), field: 'photo' };
    await featureFiles.putAttachment(engine, photo, PNG);
    await app.snapshot();
    const at = app.cut();
    for (const id of ['001', '002']) await engineWrite.patchEntity(engine, people, person(id), { town: 'later' });
    for (const id of ['003', '004']) await engineWrite.deleteEntity(engine, people, person(id));
    for (const id of ['005', '006', '007']) await engineWrite.createEntity(engine, people, person(id));
    const between = async () => {
      await engineWrite.patchEntity(engine, people, person('001'), { town: 'meanwhile' });
      await engineWrite.deleteEntity(engine, people, person('002'));
      await engineWrite.createEntity(engine, people, { ...person('003'), town: 'meanwhile' });
      await engineWrite.patchEntity(engine, people, person('005'), { town: 'meanwhile' });
      // A delete of the parent would take it.
      await engineWrite.createEntity(engine, pets, { team: 'a', personId: '006', ...pet });
    };
    const { failed } = await restore(app, at, { between });
    const mismatch = Object.fromEntries(
      ['001', '002', '003', '005', '006'].map((id) => [`people a id_${id}`, 'etag-mismatch']),
    );
    expect(failed).toEqual(mismatch);
    const now = await everything(app);
    expect(now).toMatchObject({
      'people a id_001': { town: 'meanwhile' },
      'people a id_003': { town: 'meanwhile' },
      'people a id_004': person('004'),
      'people a id_005': { town: 'meanwhile' },
      'people a id_006_rex': pet,
    });
    expect(Object.keys(now)).not.toContain('people a id_002');
    expect(Object.keys(now)).not.toContain('people a id_007');
    // The next comparison has seen it.
    expect((await restore(app, at)).failed).toEqual({});
    expect(await compare(app, at)).toEqual([]);
  });

  test('keeps a write that comes right before its own', async () => {
    const app = await open();
    const { engine, memory } = app;
    await engineWrite.createEntity(engine, people, person('001'));
    await app.snapshot();
    const at = app.cut();
    await engineWrite.patchEntity(engine, people, person('001'), { town: 'later' });
    const between = async () => {
      memory.intercept = async (request, send) => {
        if (request.method === 'GET' || !String(request.body ?? request.url).includes('id_001')) return send();
        memory.intercept = undefined;
        // Another process: this one changes an entity in turn.
        const other = { ...engine, storage: { ...engine.storage } };
        await engineWrite.patchEntity(other, people, person('001'), { town: 'meanwhile' });
        return send();
      };
    };
    expect((await restore(app, at, { between })).failed).toEqual({ 'people a id_001': 'etag-mismatch' });
    expect((await everything(app))['people a id_001']?.town).toBe('meanwhile');
  });

  test('keeps a file that was replaced after the comparison', async () => {
    const app = await open();
    const { engine } = app;
    await engineWrite.createEntity(engine, people, person('001'));
    await app.snapshot();
    const at = app.cut();
    const photo = { entity: people, key: person('001'), field: 'photo' };
    await featureFiles.putAttachment(engine, photo, PNG);
    const other = Buffer.concat([PNG, Buffer.from([1])]);
    const between = async () => void (await featureFiles.putAttachment(engine, photo, other));
    expect((await restore(app, at, { between })).failed).toEqual({ 'people a id_001': 'etag-mismatch' });
    expect((await everything(app))['people a id_001']?.photo).toBe(other.toString('hex'));
  });

  test('keeps a file that is replaced right before its own', async () => {
    const app = await open();
    const { engine, memory } = app;
    await engineWrite.createEntity(engine, people, person('001'));
    const photo = { entity: people, key: person('001'), field: 'photo' };
    await featureFiles.putAttachment(engine, photo, PNG);
    await app.snapshot();
    const at = app.cut();
    const [later, meanwhile] = [1, 2].map((byte) => Buffer.concat([PNG, Buffer.from([byte])])) as [Buffer, Buffer];
    await featureFiles.putAttachment(engine, photo, later);
    const between = async () => {
      memory.intercept = async (request, send) => {
        if (request.method !== 'PUT' || !request.url.includes('/faces/')) return send();
        memory.intercept = undefined;
        await featureFiles.putAttachment({ ...engine, storage: { ...engine.storage } }, photo, meanwhile);
        return send();
      };
    };
    expect((await restore(app, at, { between })).failed).toEqual({ 'people a id_001': 'etag-mismatch' });
    expect((await everything(app))['people a id_001']?.photo).toBe(meanwhile.toString('hex'));
  });

  test('of a partition or a row changes nothing beside it', async () => {
    const app = await open();
    const { engine } = app;
    await engineWrite.createEntity(engine, teams, { team: 'a', motto: 'm' });
    const all = [person('001'), person('002'), { ...person('001'), team: 'b', email: 'b@x' }];
    for (const one of all) {
      await engineWrite.createEntity(engine, people, one);
      await engineWrite.createEntity(engine, pets, { team: one.team, personId: one.personId, petName: 'rex', legs: 4 });
    }
    await app.snapshot();
    const at = app.cut();
    for (const one of all) await engineWrite.deleteEntity(engine, people, one);
    const row = await restore(app, at, { only: [people], partition: 'a', row: 'id_001' });
    expect(row.differences).toEqual(['create people a id_001', 'create pets a id_001_rex']);
    const partition = await restore(app, at, { only: [people], partition: 'a', top: 1 });
    expect(partition.differences).toEqual(['create people a id_002', 'create pets a id_002_rex']);
    expect(Object.keys(await everything(app)).filter((name) => name.startsWith('people b'))).toEqual([]);
  });

  test('names a unique value that was taken, and two that were exchanged, and goes on when they are free', async () => {
    const app = await open();
    const { engine } = app;
    for (const id of ['001', '002', '003']) await engineWrite.createEntity(engine, people, person(id));
    await app.snapshot();
    const at = app.cut();
    const before = await everything(app);
    const rename = (id: string, email: string) => engineWrite.patchEntity(engine, people, person(id), { email });
    await rename('001', 'x');
    await rename('002', person('001').email);
    await rename('001', person('002').email);
    await engineWrite.deleteEntity(engine, people, person('003'));
    await engineWrite.createEntity(engine, people, { ...person('004'), team: 'b', email: person('003').email });
    const taken = await restore(app, at, { only: [people], partition: 'a' });
    expect(taken.failed).toEqual({
      'people a id_001': 'duplicate-value',
      'people a id_002': 'duplicate-value',
      'people a id_003': 'duplicate-value',
    });
    await engineWrite.deleteEntity(engine, people, person('001'));
    expect((await restore(app, at)).failed).toEqual({});
    expect(await everything(app)).toEqual(before);
  });

  test('does not delete the last copy of what was archived since', async () => {
    const app = await open();
    const { engine } = app;
    await engineWrite.createEntity(engine, people, person('001'));
    await app.snapshot();
    const at = app.cut();
    await engineTransfer.requestArchive(engine, people, person('001'));
    await engineWrite.createEntity(engine, people, person('002'));
    await app.settle();
    await engineTransfer.requestArchive(engine, people, person('002'));
    await app.settle();
    const alone = await restore(app, at, { only: [archive] });
    expect(alone.failed).toEqual({ 'formerpeople a id_001': 'invalid-input' });
    expect(Object.keys(await everything(app))).toEqual(['formerpeople a id_001']);
    expect((await restore(app, at)).failed).toEqual({});
    expect(Object.keys(await everything(app))).toEqual(['people a id_001']);
  });

  test('leaves a field as it is whose text is lost, and names it', async () => {
    const app = await open();
    const { engine } = app;
    await app.snapshot();
    await engineWrite.createEntity(engine, people, { ...person('001'), story: LONG });
    const at = app.cut();
    // The former text was not copied yet.
    const container = engineRead.LARGE_CONTAINER;
    for await (const { name, etag } of storageBlobs.listContainer(app.storage, container))
      await storageBlobs.deleteBlob(app.storage, { container, name }, etag);
    const story = 'y'.repeat(100);
    await engineWrite.patchEntity(engine, people, person('001'), { story, town: 'later' });
    expect(await compare(app, at)).toMatchObject([{ change: 'replace', lost: ['story'] }]);
    expect((await restore(app, at)).failed).toEqual({});
    expect((await everything(app))['people a id_001']).toEqual({ ...person('001'), story });
    expect(await compare(app, at)).toEqual([]);
  });

  test('leaves the entities of a person who was erased since, and what has expired', async () => {
    const { engine, ...app } = await open();
    const own = { ownerId: 'ann', noteId: '1', text: 'secret' };
    const others = [
      { ownerId: 'ben', noteId: '2', text: 'x' },
      { ownerId: 'ben', noteId: '3', text: 'x', until: new Date(app.now() + 3_600_000).toISOString() },
    ];
    for (const one of [own, ...others]) await engineWrite.createEntity(engine, notes, one);
    await app.snapshot();
    const at = app.cut();
    const { append } = operationsCheck.createAuditLog(engine);
    const written = { by: 'ann', requestId: 'r', id: 'i', table: 'system', partition: '', fields: [] };
    await append([
      { ...written, at: new Date(app.now()).toISOString(), operation: 'erase', entity: 'users', subject: 'ann' },
    ]);
    for (const one of [own, ...others]) await engineWrite.deleteEntity(engine, notes, one);
    app.advance(7_200_000);
    const { differences } = await restore({ engine, ...app }, at, { only: [notes] });
    expect(differences).toEqual(['create notes ben 2']);
  });

  test('rejects an entity that clients write, and one that had another key', async () => {
    const app = await open();
    const { engine, storage } = app;
    await engineWrite.createEntity(engine, people, person('001'));
    const address = { table: 'people', partition: 'a' };
    const { rows } = await storageRows.readRange(storage, { ...address, from: 'id_', type: 'people' });
    const properties = rows[0]?.properties ?? {};
    const former = { ...address, row: 'former_001' };
    await storageRows.submit(storage, { ...address, actions: [{ kind: 'insert', row: former.row, properties }] });
    await app.snapshot();
    const at = app.cut();
    await storageRows.submit(storage, { ...address, actions: [{ kind: 'delete', row: former.row }] });
    await expect(compare(app, at)).rejects.toThrow('had another key');
    const selection = { kinds: [{ ...people, isWrittenByClients: true }], at };
    for (const work of [
      operationsBackup.compareWithPast(engine, selection, { top: 10 }),
      operationsBackup.restoreInPlace(engine, selection, [{ ...former, entity: 'people' }]),
    ])
      await expect(work).rejects.toMatchObject({ code: 'invalid-input' });
  });

  test('rejects an entity of a newer version', async () => {
    const app = await open();
    await app.snapshot();
    const at = app.cut();
    const { backup } = app;
    const address = { container: 'backup', name: 'manifests/9.json' };
    const [manifest] = await Array.fromAsync(operationsBackup.readManifests({ backup }));
    const entities = { ...manifest?.entities, people: { table: 'people', version: 2 } };
    const newer = Buffer.from(JSON.stringify({ ...manifest, entities }));
    await storageBlobs.writeBlob(backup, address, newer, { type: 'application/json' });
    await expect(compare(app, at)).rejects.toMatchObject({ code: 'wrong-setting' });
  });
});

/** In a blob. */
const LONG = 'x'.repeat(450_000);
const pet = { petName: 'rex', legs: 4 };

function person(id: string) {
  return { team: 'a', personId: id, email: `${id}@x`, town: 'Bern' };
}
