import { readFileSync } from 'node:fs';
import { beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, oneOf, type Values } from '../../lib/index.ts';
import { httpClient } from '../../local/walk/known-messages.ts';
import { createQueueWorker } from '../../local/walk/queue-worker.ts';
import { openAccessApp } from '../access-app.ts';
import { definePlaces, type Entity, modelParts } from '../kit/define.ts';
import { engineTransfer, engineWrite } from '../kit/engine.ts';
import { storageRows } from '../kit/storage.ts';
import { putAll } from '../put-all.ts';
import { log } from '../silent-log.ts';

/** What an operation runs again: a case for each cell of the table in docs/internals/consistency.md. */

type Operation = 'move' | 'archive' | 'another key' | 'large delete';
type Ran = 'yes' | 'no' | 'request only' | 'cannot';

const page =
  readFileSync('docs/internals/consistency.md', 'utf8').split('\n### What runs again\n')[1]?.split('\n### ')[0] ?? '';
const OPERATIONS: readonly Operation[] = ['move', 'archive', 'another key', 'large delete'];

/** The cells of the table. A row without a name continues the one before. */
function cells(): { readonly cell: string; readonly says: string }[] {
  const rows = page.split('\n').filter((line) => line.startsWith('| '));
  let part = '';
  return rows.slice(1).flatMap((line) => {
    const [first = '', of = '', ...says] = line
      .slice(1, -1)
      .split('|')
      .map((text) => text.trim());
    part = first || part;
    return OPERATIONS.map((operation, at) => ({ cell: `${part}, ${of}: ${operation}`, says: says[at] ?? '' }));
  });
}

const digits = z.string().regex(/^\d+$/);
/** Counts the calls of the function of a derived field. */
let calls = 0;
const regionOf = ({ site }: Values) => {
  calls += 1;
  return String(site).slice(0, 2);
};
const limited = { role: 'user', where: { state: oneOf('open') } } as const;
const byKey = { role: 'user', where: { site: oneOf('eu-1', 'eu-2') } } as const;

const makers = defineEntity('makers', {
  schema: z.object({ site: z.string(), makerId: z.string() }),
  table: 'makers',
  key: { partition: '{site}', row: 'm_{makerId}' },
  access: { read: ['root', 'user'], write: ['root'] },
});
const fields = {
  site: z.string(),
  plantId: digits,
  region: z.string().optional(),
  state: z.enum(['open', 'final']),
  makerId: z.string().optional(),
};
const plants = defineEntity('plants', {
  schema: z.object(fields),
  table: 'plants',
  key: { partition: '{site}', row: 'p_{plantId}' },
  derived: { region: regionOf },
  movable: ['site'],
  archive: { table: 'oldplants' },
  references: { makerId: { to: makers, onDelete: 'report' } },
  access: { read: ['root', 'user'], write: ['root', limited] },
});
/** A child whose rule to create compares a field, and whose rule to delete compares the key alone. */
const parts = defineEntity('parts', {
  schema: z.object({ ...fields, partId: digits }),
  table: 'plants',
  key: { partition: '{site}', row: 'p_{plantId}_{partId}' },
  derived: { region: regionOf },
  childOf: plants,
  references: { makerId: { to: makers, onDelete: 'report' } },
  access: { read: ['root', 'user'], write: { create: ['root', limited], update: ['root'], delete: ['root', byKey] } },
});
const visits = defineEntity('visits', {
  schema: z.object({ visitId: z.string(), site: z.string(), plantId: digits }),
  table: 'visits',
  key: { partition: '{visitId}', row: 'visit' },
  indexes: { plant: interPartitionIndex({ table: 'visitsbyplant', partition: '{site}_{plantId}', row: '{visitId}' }) },
  references: { plantId: { to: plants, onDelete: 'refuse' } },
  access: { read: ['root', 'user'], write: ['root'] },
});
const repairs = defineEntity('repairs', {
  schema: z.object({ repairId: z.string(), site: z.string(), plantId: digits, partId: digits }),
  table: 'repairs',
  key: { partition: '{repairId}', row: 'repair' },
  references: { partId: { to: parts, onDelete: 'report' } },
  access: { read: ['root', 'user'], write: ['root'] },
});
/** The same without children, which get another key. */
const depots = defineEntity('depots', {
  schema: z.object(fields),
  table: 'depots',
  key: { partition: '{site}', row: 'd_{plantId}', former: { partition: '{site}', row: '{plantId}_d' } },
  derived: { region: regionOf },
  references: { makerId: { to: makers, onDelete: 'report' } },
  access: { read: ['root', 'user'], write: [limited] },
});
const stays = defineEntity('stays', {
  schema: z.object({ stayId: z.string(), site: z.string(), plantId: digits }),
  table: 'stays',
  key: { partition: '{stayId}', row: 'stay' },
  indexes: { depot: interPartitionIndex({ table: 'staysbydepot', partition: '{site}_{plantId}', row: '{stayId}' }) },
  references: { plantId: { to: depots, onDelete: 'refuse' } },
  access: { read: ['root', 'user'], write: ['root'] },
});
const entities = [makers, plants, parts, visits, repairs, depots, stays] as const;
const model = defineModel({ roles: ['user', 'root', 'operator'], operatorRole: 'operator', entities });
const root = { subject: 'root', roles: ['root'] };
const ann = { subject: 'ann', roles: ['user'] };

const app = await openAccessApp(import.meta.url, model, { httpClient });
const { engine, storage } = app;
const worker = createQueueWorker({ engine, entities: model.list, log }, { lastLogged: () => '' });
const find = (name: string) => model.list.find((entity) => entity.name === name) as Entity;
const linked = { plants: find('plants'), parts: find('parts'), depots: find('depots') };

let made = 0;
/** The key of the plant, or depot, of a case. */
let key = { site: 'eu-1', plantId: '0' };
beforeEach(() => {
  made += 1;
  key = { site: 'eu-1', plantId: String(made) };
});
const MANY = 110;

async function create(entity: Entity, values: Values): Promise<void> {
  await engineWrite.createEntity(engine, entity, values);
}

/** Changes a stored row as nothing but an operator can. */
async function change(entity: Entity, values: Values, properties: Readonly<Record<string, unknown>>): Promise<void> {
  const { table, partition, row } = definePlaces.addressOf(entity, values);
  await storageRows.submit(storage, { table, partition, actions: [{ kind: 'merge', row, properties, etag: '*' }] });
}

const read = async (entity: Entity, values: Values) =>
  (await storageRows.readRow(storage, definePlaces.addressOf(entity, values)))?.properties as Values | undefined;

interface Subject {
  readonly operation: Operation;
  /** The entity of the rows to change and to look at: the plant or depot itself, or a child of it. */
  readonly entity: Entity;
  readonly values: Values;
  /** Where the row is afterwards. */
  readonly there: Entity;
  readonly moved: Values;
}

/** Creates the entity of the case, with its children, and says which row the case is about. */
async function begin(operation: Operation, of: string, over: Values = {}): Promise<Subject> {
  if (operation === 'another key') {
    const former = modelParts.formerOf(linked.depots) as Entity;
    await create(former, { ...key, state: 'open', ...over });
    return { operation, entity: former, values: key, there: linked.depots, moved: key };
  }
  const isOfChild = of === 'children';
  await create(linked.plants, { ...key, state: 'open', ...(isOfChild ? {} : over) });
  const many = operation === 'large delete' ? MANY : 1;
  const children = Array.from({ length: many }, (_, at) => ({
    ...key,
    partId: String(at),
    state: 'open',
    ...(isOfChild ? over : {}),
  }));
  expect(await putAll(engine, linked.parts, children)).toEqual(children.map(() => 'created'));
  const own = isOfChild ? { ...key, partId: '0' } : key;
  const entity = isOfChild ? linked.parts : linked.plants;
  const archive = linked.plants.archive as Entity;
  const archived = isOfChild ? { ...linked.parts, table: archive.table } : archive;
  const moved = operation === 'move' ? { ...own, site: 'eu-2' } : own;
  return { operation, entity, values: own, there: operation === 'archive' ? archived : entity, moved };
}

const path = () => `plants/${key.site}/${key.plantId}`;
const request = (operation: Operation, caller = root) =>
  operation === 'large delete'
    ? app.ask(caller, 'DELETE', path())
    : app.ask(caller, 'POST', `${path()}/${operation}`, operation === 'move' ? { site: 'eu-2' } : undefined);

/** Runs the operation, with something that happens between the request and its message. Returns the final status of the operation. */
async function run({ operation }: Subject, meanwhile = async () => {}, caller = root): Promise<string> {
  if (operation === 'another key') {
    await meanwhile();
    const reason = await engineTransfer.moveToKey(engine, linked.depots, key);
    return reason === undefined ? 'succeeded' : 'failed';
  }
  const { status, text, body } = await request(operation, caller);
  expect(status, text).toBe(202);
  await meanwhile();
  await worker.settle();
  const kind = operation === 'large delete' ? 'delete' : operation;
  const { body: found } = await app.ask(caller, 'GET', `${path()}/${kind}/${body.operationId}`);
  return found.status;
}

/** True if the operation was done, and false if it was refused and has changed nothing. */
async function isDone(subject: Subject, status: string): Promise<boolean> {
  const { operation, entity, values, there, moved } = subject;
  const [here, arrived] = [await read(entity, values), operation !== 'large delete' && (await read(there, moved))];
  const done = { status, isHere: here?.EntityType === entity.name, hasArrived: Boolean(arrived) };
  const isOver = status === 'succeeded';
  expect(done).toEqual({ status, isHere: !isOver, hasArrived: isOver && operation !== 'large delete' });
  return isOver;
}

/** An old row that the schema rejects. */
async function schema(operation: Operation, of: string): Promise<Ran> {
  const subject = await begin(operation, of);
  await change(subject.entity, subject.values, { state: 'of an old release' });
  return (await isDone(subject, await run(subject))) ? 'no' : 'yes';
}

/** A stored value that is not what its function returns. */
async function derived(operation: Operation, of: string): Promise<Ran> {
  const subject = await begin(operation, of);
  await change(subject.entity, subject.values, { region: 'of before' });
  calls = 0;
  expect(await isDone(subject, await run(subject))).toBe(true);
  if (operation === 'large delete') return calls > 0 ? 'yes' : 'no';
  const { region } = (await read(subject.there, subject.moved)) ?? {};
  expect(['of before', 'eu']).toContain(region);
  expect(calls > 0).toBe(region === 'eu');
  return region === 'eu' ? 'yes' : 'no';
}

/** A declaration that has a period besides. */
function periods(operation: Operation, of: string): Ran {
  const period = { per: 'day', field: 'day', keep: 3 } as const;
  const access = { read: ['root'], write: ['root'] } as const;
  const day = z.iso.date();
  const isOfChild = of === 'children';
  const parent = {
    schema: z.object({ site: z.string(), day }),
    table: 'runs',
    key: { partition: '{site}', row: '{day}', former: { partition: '{site}', row: '{day}_run' } },
    access,
    period,
    archive: { table: 'oldruns' },
    movable: ['site'],
  } as const;
  const { archive, movable, period: of1, key: keys, ...rest } = parent;
  const { former, ...now } = keys;
  const runs = defineEntity('runs', {
    ...rest,
    key: operation === 'another key' ? keys : now,
    ...(isOfChild ? {} : { period: of1 }),
    ...(operation === 'archive' ? { archive } : {}),
    ...(operation === 'move' ? { movable } : {}),
  });
  expect(former).toBeDefined();
  const steps = defineEntity('steps', {
    schema: z.object({ site: z.string(), day, step: digits }),
    table: 'runs',
    key: { partition: '{site}', row: '{day}_{step}' },
    childOf: runs,
    access,
    ...(isOfChild ? { period: of1 } : {}),
  });
  const list = isOfChild || operation === 'large delete' ? ([runs, steps] as const) : ([runs] as const);
  try {
    defineModel({ roles: ['root'], operatorRole: 'root', entities: list });
    return 'no';
  } catch (error) {
    const isOf = operation === 'another key' ? /cannot get another key/ : /with a period cannot use/;
    expect(String(error)).toMatch(isOf);
    return 'cannot';
  }
}

/** A row that the rules let the caller change at the request, and not any more when the operation runs. */
async function rules(operation: Operation, of: string): Promise<Ran> {
  const subject = await begin(operation, of);
  const close = async () => {
    if (operation === 'another key') return change(subject.entity, subject.values, { state: 'final' });
    const at = of === 'children' ? `parts/${key.site}/${key.plantId}/0` : path();
    expect((await app.ask(root, 'PATCH', at, { state: 'final' })).status).toBe(200);
  };
  const isOver = await isDone(subject, await run(subject, close, ann));
  if (!isOver) return 'yes';
  if (of === 'entity') return 'no';
  // The same rule over the key is refused by the request.
  key = { site: 'us-1', plantId: key.plantId };
  await begin(operation, of);
  expect((await request(operation, ann)).status).toBe(403);
  return 'request only';
}

/** A row that refers to an entity which is not there, by a field of the key and one of its own. */
async function referring(operation: Operation, of: string): Promise<Ran> {
  await app.ask(root, 'PUT', `makers/eu-1/${key.plantId}`, {});
  await app.ask(root, 'PUT', `makers/eu-2/${key.plantId}`, {});
  const subject = await begin(operation, of, { makerId: key.plantId });
  const leave = async () => {
    for (const site of ['eu-1', 'eu-2'])
      expect((await app.ask(root, 'DELETE', `makers/${site}/${key.plantId}`)).status).toBe(204);
  };
  return (await isDone(subject, await run(subject, leave))) ? 'no' : 'yes';
}

/** A row to which another entity refers when the operation runs. */
async function referred(operation: Operation, of: string): Promise<Ran> {
  const subject = await begin(operation, of);
  const kind = operation === 'another key' ? 'stays' : of === 'children' ? 'repairs' : 'visits';
  const id = { stays: 'stayId', repairs: 'repairId', visits: 'visitId' }[kind];
  const refer = async () => {
    const values = { ...subject.values, [id]: `of-${made}` };
    if (kind === 'stays') await engineTransfer.moveToKey(engine, linked.depots, key);
    expect((await app.ask(root, 'POST', kind, values)).status).toBe(201);
  };
  return (await isDone(subject, await run(subject, refer))) ? 'no' : 'yes';
}

const PARTS: Readonly<Record<string, (operation: Operation, of: string) => Ran | Promise<Ran>>> = {
  'the schema': schema,
  '`derived`': derived,
  'bounds of `period`': periods,
  'rules of the requester': rules,
  'references to other entities': referring,
  'references of other entities to it': referred,
};

test('the table has a cell for each part of a write, kind of entity and operation', () => {
  const expected = Object.keys(PARTS).flatMap((part) =>
    ['entity', 'children'].flatMap((of) => OPERATIONS.map((operation) => `${part}, ${of}: ${operation}`)),
  );
  expect(cells().map(({ cell }) => cell)).toEqual(expected);
  for (const { cell, says } of cells()) expect(says, cell).toMatch(/^(yes|no|request only|cannot)\b/);
});

test.each(cells())('$cell: $says', { tags: ['slow'] }, async ({ cell, says }) => {
  const [, part = '', of = '', operation = ''] = /^(.+), (entity|children): (.+)$/.exec(cell) ?? [];
  if (of === 'children' && operation === 'another key') return expect(withChildren).toThrow('has children');
  const ran = await PARTS[part]?.(operation as Operation, of);
  expect(says).toMatch(new RegExp(`^${ran}\\b`));
});

/** A declaration of an entity with children that gets another key. */
function withChildren(): void {
  const access = { read: ['root'], write: ['root'] } as const;
  const runs = defineEntity('runs', {
    schema: z.object({ site: z.string(), run: digits }),
    table: 'runs',
    key: { partition: '{site}', row: 'r_{run}', former: { partition: '{site}', row: 'run_{run}' } },
    access,
  });
  const steps = defineEntity('steps', {
    schema: z.object({ site: z.string(), run: digits, step: digits }),
    table: 'runs',
    key: { partition: '{site}', row: 'r_{run}_{step}' },
    childOf: runs,
    access,
  });
  defineModel({ roles: ['root'], operatorRole: 'root', entities: [runs, steps] });
}
