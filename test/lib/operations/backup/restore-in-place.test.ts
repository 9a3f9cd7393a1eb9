import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, intraPartitionIndex } from '../../../../lib/define.ts';
import { RowkeyError } from '../../../../lib/index.ts';
import { PNG } from '../../../../local/walk/png.ts';
import { openBackedUp } from '../../../backed-up.ts';
import { type Engine, engineRead, engineTransfer, engineWrite } from '../../../kit/engine.ts';
import { featureFiles } from '../../../kit/features.ts';
import { operationsBackup, operationsCheck } from '../../../kit/operations.ts';
import { storageRows } from '../../../kit/storage.ts';

const access = { read: ['clerk'], write: ['clerk'] } as const;
const personId = z.string().regex(/^\d{3}$/);
const declaredPeople = defineEntity('people', {
  schema: z.object({
    team: z.string(),
    personId,
    email: z.string(),
    town: z.string().optional(),
    secret: z.string().optional(),
    story: z.string().max(200_000).optional(),
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
  entities: [declaredTeams, declaredPeople, declaredPets],
});
const [teams, people, pets] = model.list as [Entity, Entity, Entity];
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
  const failed: string[] = [];
  for (const entity of options.only ?? [teams, people, archive]) {
    const kinds = kindsOf(entity);
    const archived = entity.isArchive ? kindsOf(people) : undefined;
    let left = differences.filter((each) => kinds.includes(each.entity));
    for (let before = -1; left.length !== before && left.length > 0; ) {
      before = left.length;
      const chosen = left.map(({ entity: kind, address, version }) => ({ entity: kind.name, ...address, version }));
      const errors = new Map<string, RowkeyError>();
      for (let first = 0; first < chosen.length; first += 5) {
        const some = chosen.slice(first, first + 5);
        for (const { entity: kind, address, error } of await operationsBackup.restoreInPlace(
          app.engine,
          { kinds, archived, at },
          some,
        ))
          if (error) errors.set(`${kind.name} ${address.partition} ${address.row}`, error);
      }
      const errorOf = ({ entity: kind, address }: (typeof left)[number]) =>
        errors.get(`${kind.name} ${address.partition} ${address.row}`);
      left = left.filter((each) => errorOf(each));
      failed.splice(0, failed.length, ...left.map((each) => `${each.address.row}: ${errorOf(each)?.code}`));
    }
  }
  await app.settle();
  return {
    differences: differences.map(({ entity, address, change }) => `${change} ${entity.name} ${address.row}`),
    failed,
  };
}

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
  const all = async (entity: Entity) =>
    Object.values(await everything(app)).filter((values) =>
      entity === pets ? 'petName' in values : 'email' in values && !('petName' in values),
    );
  const chosen = async (entity: Entity) => {
    const found = (await all(entity)) as { team: string; personId: string; email: string }[];
    return found[below(found.length)];
  };
  const team = () => ['a', 'b', 'c'][below(3)] ?? '';
  const story = () => String(below(10)).repeat(70_000);
  const steps: (() => Promise<unknown>)[] = [
    () => {
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
    },
    async () => {
      const one = await chosen(people);
      made += 1;
      if (!one) return;
      const changes = [
        { town: `t${below(3)}` },
        { email: `${made}@x` },
        { story: story() },
        { story: null },
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
    async () => {
      const one = await chosen(people);
      if (one) await engineTransfer.requestMove(engine, people, one, { team: team() });
    },
    async () => {
      const one = await chosen(people);
      if (one && below(3) === 0) await engineTransfer.requestArchive(engine, people, one);
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
    async (seed) => {
      const app = await open();
      const walk = createWalk(app, seed);
      await walk(25);
      await app.snapshot();
      await app.copyBlobs();
      await walk(15);
      const at = app.cut();
      const before = await everything(app);
      await walk(40);
      const after = await everything(app);
      expect(after).not.toEqual(before);
      const differences = await compare(app, at);
      expect(differences.length).toBeGreaterThan(5);
      // A comparison changes nothing.
      expect(await everything(app)).toEqual(after);
      const { failed } = await restore(app, at);
      expect(failed).toEqual([]);
      expect(await everything(app)).toEqual(before);
      expect(await check(app)).toEqual([]);
      expect(await compare(app, at)).toEqual([]);
    },
  );
});
