import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, indexEntity, intraPartitionIndex, total, type Values } from '../../lib/index.ts';
import { creationOf } from '../../local/walk/values.ts';
import { model as deployed } from '../../model/model.ts';
import { type Ask, openAccessApp, type Reply } from '../access-app.ts';
import { model as fixtures } from '../fixtures/model.ts';
import { baseValues } from '../kit/base.ts';
import { defineCodec, type Entity, type LinkedModel } from '../kit/define.ts';
import { httpDoor, type Route } from '../kit/http.ts';
import { sampleItems } from '../points.ts';

/**
 * Two worlds that differ only in what a role may not read: restricted fields, and entities that the role does not read. Every route
 * that reads must return the same in both to that role, explanations included. So the test finds a value that comes by any way,
 * such as a derived field, a condition, a copy, a count, a total, an order or a page. It works with any model.
 */

const INSTANCES = 4;
/** Some have a key that is taken, or that a path cannot contain. */
const SAMPLES = 12;
const PATHS = 3;

const text = z.string().min(1).max(30);
const things = defineEntity('things', {
  schema: z.object({
    city: text,
    id: z.string().regex(/^\d{1,4}$/),
    group: text,
    age: z.int32().min(0).max(99),
    secret: text.optional(),
    rank: z.int32().min(0).max(99).optional(),
    isOld: z.boolean().optional(),
    initial: z.string().optional(),
  }),
  table: 'things',
  key: { partition: '{city}', row: 'thing_{id}' },
  encrypted: ['secret'],
  derived: { isOld: ({ age }) => Number(age) % 2 === 1, initial: ({ secret }) => String(secret ?? '').slice(0, 1) },
  indexes: {
    old: intraPartitionIndex({ row: 'old_{id}', when: ({ age }) => Number(age) % 2 === 1 }),
    ranked: indexEntity({ row: 'ranked', holds: '{rank:2}_{id}' }),
  },
  totals: {
    perGroup: total({
      table: 'thingspergroup',
      partition: 'all',
      row: '{group}',
      when: ({ age }) => Number(age) % 2 === 1,
    }),
    sums: total({ table: 'thingsums', partition: 'all', row: '{group}', sum: ['age'] }),
  },
  access: { read: ['reader', 'hr'], write: ['hr'], restricted: { age: ['hr'], rank: ['hr'], secret: ['hr'] } },
});
const notes = defineEntity('notes', {
  schema: z.object({ city: text, id: z.string().regex(/^\d{1,4}$/), number: z.int32().min(0).max(9), note: text }),
  table: 'things',
  key: { partition: '{city}', row: 'thing_{id}_{number:1}' },
  childOf: things,
  access: { read: ['hr'], write: ['hr'] },
});
const boards = defineEntity('boards', {
  schema: z.object({
    city: text,
    topId: z.string().optional(),
    topAge: z.int32().optional(),
    topGroup: text.optional(),
  }),
  table: 'things',
  key: { partition: '{city}', row: 'board' },
  denormalized: {
    topId: {
      source: things,
      by: 'id',
      copies: { topAge: ({ age }) => age, topGroup: ({ group }) => group },
    },
  },
  access: { read: ['reader', 'hr'], write: ['hr'] },
});
const careless = defineModel({ roles: ['reader', 'hr'], operatorRole: 'hr', entities: [things, notes, boards] });

type AnyModel = LinkedModel;
interface Instance {
  readonly entity: Entity;
  readonly values: Values;
}

const isReader = ({ access }: Entity, role: string) => access.read.includes(role);
const isVisible = (entity: Entity, field: string, role: string) =>
  isReader(entity, role) && (entity.access.restricted?.[field]?.includes(role) ?? true);

/** Creates entities with random values that refer to one another; those that the model rejects are left out. */
async function fill(ask: Ask, { list, roles }: AnyModel): Promise<Instance[]> {
  const made: Instance[] = [];
  for (const entity of list.toSorted((one, other) => rankOf(one) - rankOf(other))) {
    const find = (other: Entity | undefined, nth: number) => {
      const others = made.filter((one) => one.entity === other);
      return others[nth % others.length]?.values ?? {};
    };
    for (const [nth, sample] of fc.sample(creationOf(entity), { numRuns: SAMPLES, seed: 7 }).entries()) {
      const links = Object.values(entity.references).map(({ field, to, by }) => ({ [field]: find(to, nth)[by] }));
      const copied = Object.values(entity.denormalized).map(({ source, field, by }) => {
        const values = find(source, nth);
        return { ...baseValues.pick(values, entity.keyFields), [field]: values[by] };
      });
      const parent = baseValues.pick(find(entity.childOf, nth), entity.childOf?.keyFields ?? []);
      const stored = await create(ask, roles, entity, Object.assign({}, sample, parent, ...links, ...copied));
      if (stored) made.push({ entity, values: stored });
      if (made.filter((one) => one.entity === entity).length === INSTANCES) break;
    }
  }
  return made;
}

/** Those that others refer to come first. */
function rankOf({ childOf, references, denormalized }: Entity): number {
  return (childOf ? 2 : 0) + (Object.keys(references).length > 0 || Object.keys(denormalized).length > 0 ? 1 : 0);
}

async function create(ask: Ask, roles: readonly string[], entity: Entity, values: Values): Promise<Values | undefined> {
  const { name, series, keyFields } = entity;
  if (!series) {
    const { status, body } = await ask({ roles }, 'POST', name, values);
    return status === 201 ? body : undefined;
  }
  const counts = values.counts ?? { [series.first]: 1 };
  const path = [name, ...keyFields.map((field) => encodeURIComponent(String(values[field])))].join('/');
  const { status } = await ask({ roles }, 'PATCH', path, { counts });
  return status === 204 ? { ...values, counts } : undefined;
}

/** The same entity with other values in the fields that the role may not read; undefined if it may be absent. */
function changed({ entity, values }: Instance, role: string, position: number): Values | undefined {
  const { keyFields, schema, series, union, children, dependents, referencedBy, indexes } = entity;
  const links = [...Object.keys(entity.references), ...Object.keys(entity.denormalized)];
  if (series) return isReader(entity, role) ? values : { ...values, counts: { [series.first]: 2 } };
  const isNeeded = children.length + dependents.length + referencedBy.length > 0;
  if (!isReader(entity, role) && !isNeeded && position % 2 === 0) return undefined;
  const unique = Object.values(indexes).flatMap((index) => ('unique' in index && index.unique ? index.uses : []));
  const written: readonly string[] = Object.keys(defineCodec.writableSchema(entity).shape);
  const fields = written.map((field) => {
    // A field of another kind stays absent.
    const isOther = union !== undefined && values[field] === undefined;
    const isKept =
      isOther || isVisible(entity, field, role) || [...keyFields, ...unique, ...links, 'kind'].includes(field);
    return [
      field,
      isKept ? values[field] : otherValue(schema.shape[field] as z.ZodType, values[field], position),
    ] as const;
  });
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
}

/** Another valid value of the field, or none, if one of these is valid. */
function otherValue(schema: z.ZodType, value: unknown, position: number): unknown {
  const texts = typeof value === 'string' ? [`${value}x`, value.replace(/\d/, '9')] : ['z', '2001-02-03'];
  const numbers = typeof value === 'number' ? [value + 1, value - 1] : [5];
  const others = [...(typeof value === 'boolean' ? [!value] : []), ...numbers, ...texts, [], undefined];
  // Every other optional field is absent.
  if (position % 2 === 1) others.unshift(undefined);
  return others.find((other) => other !== value && schema.safeParse(other).success) ?? value;
}

/** The paths of a route for some entities that the role reads, by the values that it sees. */
function pathsOf({ path, entity, name }: Route, instances: readonly Instance[], role: string): string[] {
  const own = instances.filter((one) => one.entity === entity || one.entity.archive === entity);
  const filled = own.flatMap(({ entity: of, values }) => {
    let isKnown = true;
    const text = path.replace(/\{(\w+)\}/g, (_, field: string) => {
      const value = [values[field]].flat()[0];
      isKnown &&= value !== undefined && (isVisible(of, field, role) || of.keyFields.includes(field));
      return encodeURIComponent(String(value));
    });
    const { span } = of.series ?? {};
    const at = span ? String(values[span.field]) : '';
    return isKnown ? [name.endsWith('-span') ? `${text}?from=${at}&to=${at}` : text] : [];
  });
  return [...new Set(filled)].slice(0, PATHS);
}

/** What a caller sees of a reply. ETags and continuations differ in any two worlds. */
function shown({ status, headers, body }: Reply): unknown {
  return { status, isLast: !headers.has('link'), body };
}

const UNCHANGED = /^(health|model|openapi.json|problems|grants)$/;

const models: [string, AnyModel, string][] = [
  ['a model that makes values from restricted ones', careless, 'c'],
  ['the packs', deployed, 'p'],
  ['the fixtures', fixtures, 'f'],
];
// Without the packs, the deployed model may be empty.
const filledModels = models.filter(([, { list }]) => list.length > 0);

describe.each(filledModels)('of %s', (_, model, prefix) => {
  const routes = httpDoor
    .createRoutes(model)
    .filter(
      ({ method, kind, isUndescribed, path }) =>
        (method === 'GET' || kind === 'read') &&
        !isUndescribed &&
        !UNCHANGED.test(path) &&
        !/^operations\/(?!scan)/.test(path),
    );
  const [operator] = [model.operatorRole];

  test.each(sampleItems(model.roles, 'role', 2))(
    'no route that reads tells %s what differs only in hidden values',
    { tags: ['slow'], timeout: 600_000 },
    async (role) => {
      const [one, other] = await Promise.all(
        ['a', 'b'].map((world) =>
          openAccessApp(import.meta.url, { ...model, prefix: `${prefix}${role.slice(0, 6)}${world}` }),
        ),
      );
      if (!one || !other) throw new Error('Two worlds are needed.');
      const instances = await fill(one.ask, model);
      let differing = 0;
      for (const [position, instance] of instances.entries()) {
        const values = changed(instance, role, position);
        if (
          values === undefined ||
          JSON.stringify(values) !== JSON.stringify(baseValues.pick(instance.values, Object.keys(values)))
        )
          differing += 1;
        if (values)
          expect(await create(other.ask, model.roles, instance.entity, values), instance.entity.name).toBeDefined();
      }
      expect(differing > 0).toBe(
        model.list.some((entity) => Object.keys(entity.columns).some((field) => !isVisible(entity, field, role))),
      );
      let compared = 0;
      for (const route of routes) {
        if (!route.roles?.includes(role) && role !== operator) continue;
        for (const path of pathsOf(route, instances, role))
          for (const end of ['', 'explain=true']) {
            const whole = end ? `${path}${path.includes('?') ? '&' : '?'}${end}` : path;
            const [seen, there] = [
              await one.ask({ roles: [role] }, 'GET', whole),
              await other.ask({ roles: [role] }, 'GET', whole),
            ];
            expect(shown(there), `GET ${whole}`).toEqual(shown(seen));
            compared += 1;
          }
      }
      const reads = model.list
        .filter((entity) => !entity.series && isReader(entity, role))
        .flatMap((entity) => instances.filter((each) => each.entity === entity).slice(0, 1))
        .slice(0, 16)
        .map(({ entity, values }, index) => [
          `r${index}`,
          { range: entity.name, partition: baseValues.pick(values, entity.partition.fields) },
        ]);
      if (reads.length > 0) {
        const body = { reads: Object.fromEntries(reads) };
        const [seen, there] = [
          await one.ask({ roles: [role] }, 'POST', 'query', body),
          await other.ask({ roles: [role] }, 'POST', 'query', body),
        ];
        expect(shown(there), 'POST query').toEqual(shown(seen));
      }
      expect(compared).toBeGreaterThan(model.list.filter((entity) => isReader(entity, role)).length);
    },
  );
});
