import fc from 'fast-check';
import type { Values } from '../../lib/index.ts';
import { baseValues } from '../kit/base.ts';
import type { Entity, LinkedModel } from '../kit/define.ts';
import { pathOf } from './declared-rules.ts';
import type { Caller } from './evaluator.ts';
import type { Marked } from './marked-world.ts';

/** The requests that OpenAPI describes too loosely to meet stored entities: reads and writes by their keys. */
export function aimedAttacks(
  stored: readonly Marked[],
  fields: Readonly<Record<string, readonly unknown[]>>,
): fc.Arbitrary<Aimed> {
  const single = stored.filter(({ entity }) => !entity.series);
  const row = fc.constantFrom(...single);
  const changes = fc.record(
    Object.fromEntries(Object.entries(fields).map(([name, values]) => [name, fc.constantFrom(...values)])),
    { requiredKeys: [] },
  );
  const keyOf = ({ entity, values }: Marked) => baseValues.pick(values, entity.keyFields);
  // Nobody knows the text of another entity.
  const unmarked = ({ values, mark }: Marked): Values =>
    JSON.parse(JSON.stringify(values).replaceAll(mark, 'unmarked'));
  const mine = (one: Marked, more: Values): Values => ({
    ...baseValues.pick(unmarked(one), written(one.entity)),
    ...baseValues.pick(more, Object.keys(one.entity.schema.shape)),
  });
  const read = fc.tuple(row, fc.nat(), fc.nat(3), fc.boolean()).map(([one, which, how, isSelected]) => {
    const { entity, values } = one;
    const { name, partition, children, indexes } = entity;
    const names = Object.keys(indexes);
    const by = names[which % Math.max(1, names.length)];
    const index = by === undefined ? undefined : indexes[by];
    const select = isSelected ? { select: Object.keys(entity.columns).slice(which % 3, 3 + (which % 3)) } : {};
    if (how === 0 && index) {
      const all = [...(index.remote?.partition.fields ?? partition.fields), ...index.row.fields];
      const given = [...new Set(all)].slice(0, 1 + (which % all.length));
      return { by, entity: name, values: baseValues.pick(values, given), ...select };
    }
    if (how === 1)
      return { range: name, partition: baseValues.pick(values, partition.fields), top: 1 + (which % 50), ...select };
    if (how === 2) return { list: name };
    return { get: name, key: keyOf(one), include: children.map((child) => child.name), ...select };
  });
  const action = fc.tuple(row, changes, fc.nat(3)).map(([one, more, how]) => {
    const actions = [
      { delete: keyOf(one) },
      { patch: { ...keyOf(one), ...more } },
      { put: mine(one, more) },
      { create: mine(one, more) },
    ];
    return [one.entity.name, actions[how]] as const;
  });
  const query = fc.array(read, { minLength: 1, maxLength: 4 }).map((reads) => ({
    method: 'POST',
    path: 'query',
    body: { reads: Object.fromEntries(reads.map((one, at) => [`r${at}`, one])) },
  }));
  const transact = fc.array(action, { minLength: 1, maxLength: 3 }).map((actions) => ({
    method: 'POST',
    path: 'transact',
    body: { actions: actions.map((one) => Object.fromEntries([one])) },
  }));
  const batch = fc.tuple(fc.array(action, { minLength: 1, maxLength: 3 }), fc.boolean()).map(([actions, atomic]) => {
    const [[name] = ['']] = actions;
    const body = { actions: actions.filter(([of]) => of === name).map(([, one]) => one), atomic };
    return { method: 'POST', path: `${name}/batch`, body };
  });
  const write = fc
    .tuple(row, changes, fc.constantFrom('PUT', 'PATCH', 'POST', 'DELETE'))
    .map(([one, more, method]) => ({
      method,
      path: method === 'POST' ? one.entity.name : pathOf(one),
      body: method === 'DELETE' ? undefined : method === 'PATCH' ? more : mine(one, more),
    }));
  const grant = fc
    .tuple(row, fc.constantFrom('r', 'ra', 'raud'), fc.boolean())
    .map(([{ entity }, permissions, renew]) => ({
      method: 'POST',
      path: 'grants',
      body: { entity: entity.name, scope: 'own', permissions, renew },
    }));
  const move = fc.tuple(row, changes, fc.constantFrom('move', 'archive')).map(([one, more, how]) => ({
    method: 'POST',
    path: `${pathOf(one)}/${how}`,
    body: how === 'move' ? baseValues.pick(more, one.entity.movable) : undefined,
  }));
  return fc.oneof(query, transact, batch, write, write, grant, move);
}

interface Aimed {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}

const written = (entity: Entity) =>
  Object.keys(entity.schema.shape).filter((field) => !entity.decidedFields.includes(field));

/** The values of keys and of the fields that rules compare, and the subjects of the callers. */
export function valuesByField(
  { list }: LinkedModel,
  stored: readonly Marked[],
  callers: readonly Caller[],
): Record<string, readonly unknown[]> {
  const fields = list.flatMap((entity) => {
    const compared = Object.values(entity.access.rules ?? {}).flatMap((rule) =>
      rule.flatMap(({ where = {} }) => Object.entries(where)),
    );
    const subjects = compared.flatMap(([field, term]) =>
      typeof term === 'object' && term.is === 'subject' ? [field] : [],
    );
    const own = stored.filter((one) => one.entity === entity && !entity.series);
    return [...entity.keyFields, ...compared.map(([field]) => field)].map((field) => {
      const values = own.flatMap(({ values: all }) => (all[field] === undefined ? [] : [all[field]]));
      return [field, [...values, ...(subjects.includes(field) ? callers.map(({ subject }) => subject) : [])]] as const;
    });
  });
  const byField = Map.groupBy(fields, ([field]) => field);
  const all = [...byField].map(([field, some]) => [field, [...new Set(some.flatMap(([, values]) => values))]] as const);
  return Object.fromEntries(all.filter(([, values]) => values.length > 0));
}
