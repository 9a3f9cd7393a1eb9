import type { Values } from '../base/values.ts';
import type { CallOptions } from './client-types.ts';
import type { EntityCalls, Tools } from './core.ts';
import type { EntityDescription, RangesDescription } from './paths.ts';

/** Totals of groups of entities. Loaded at first use. */

export async function readTotal(
  { core, send }: EntityCalls,
  entity: EntityDescription,
  name: string,
  group: Values,
  { signal }: CallOptions = {},
): Promise<unknown> {
  const { tools } = core;
  const total = totalOf(tools, entity, name);
  tools.checkFields(total, group, `${entity.name}.totals.${name}`);
  const path = totalsPath(tools, entity, name, total.fields, group);
  return JSON.parse((await send({ method: 'GET', path, signal })).text);
}

/** The path of the totals of a range of groups. */
export function totalRangePath(
  { core: { tools } }: EntityCalls,
  entity: EntityDescription,
  name: string,
  given: Values,
): string {
  const fields = tools.rangeFields(totalOf(tools, entity, name), given, `the totals "${name}" of ${entity.name}`);
  return totalsPath(tools, entity, name, fields, given);
}

function totalsPath(
  { toPath, valuesOf }: Tools,
  entity: EntityDescription,
  name: string,
  fields: readonly string[],
  given: Values,
): string {
  return toPath([entity.name, 'totals', name, ...valuesOf(fields, given)]);
}

function totalOf({ invalidInput }: Tools, { name, totals }: EntityDescription, total: string): RangesDescription {
  const found = Object.hasOwn(totals, total) ? totals[total] : undefined;
  if (!found) throw invalidInput(`${name} has no totals "${total}".`);
  return found;
}
