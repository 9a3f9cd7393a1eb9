import { z } from 'zod';
import { optionsOf } from '../schema/options.ts';
import { type Action, WRITES } from './access.ts';

/** How many requests each caller with a role may make: for all processes of the app together. */
export interface RequestLimit<
  Role extends string = string,
  Name extends string = string,
  Operation extends string = string,
> {
  /** The role whose callers are counted, each alone. */
  readonly role: Role;
  /** The entity whose requests count; by default those of all entities, and those of the app's own operations and functions. */
  readonly entity?: Name | undefined;
  /** The operation of the app whose requests count, in place of an entity. */
  readonly operation?: Operation | undefined;
  /** What counts; by default everything. `write`: creates, updates and deletes. */
  readonly action?: Action | 'write' | undefined;
  /** How many requests are allowed: 1 to 1,000,000. */
  readonly requests: number;
  /** A minute, an hour or a day of UTC: the count begins again at its start. */
  readonly per: 'minute' | 'hour' | 'day';
}

const MAX_REQUESTS = 1_000_000;

export const RequestLimitOptions = optionsOf({
  role: z.string(),
  entity: z.string().optional(),
  operation: z.string().optional(),
  action: z.enum(['read', 'write', ...WRITES]).optional(),
  requests: z.int().min(1).max(MAX_REQUESTS),
  per: z.enum(['minute', 'hour', 'day']),
} satisfies Record<keyof RequestLimit, z.ZodType>);

/** What an operation does to one entity: a PUT that may create or replace does one of two. */
export type Deed = Action | readonly Action[];

/** How many of the deeds count. */
export function countDeeds({ action }: RequestLimit, deeds: readonly Deed[]): number {
  if (action === undefined) return deeds.length;
  const counted = (deed: Action) => (action === 'write' ? deed !== 'read' : deed === action);
  return deeds.filter((deed) => [deed].flat().some(counted)).length;
}

/** Names the limit for a caller. */
export function describeLimit({ entity, operation, action, requests, per }: RequestLimit): string {
  const what =
    action === undefined ? (requests === 1 ? 'request' : 'requests') : requests === 1 ? action : `${action}s`;
  const of = entity ?? operation;
  return `${requests} ${what}${of === undefined ? '' : ` of ${of}`} per ${per}`;
}

/** Yields a sentence for each limit that names what the model does not have, or that another one repeats. */
export function* limitErrors(
  limits: readonly RequestLimit[],
  {
    roles,
    entities,
    operations,
  }: {
    readonly roles: readonly string[];
    readonly entities: readonly { readonly name: string }[];
    readonly operations: readonly { readonly name: string }[];
  },
): Generator<string> {
  const known = new Set<string>();
  for (const { role, entity, operation, action, per } of limits) {
    if (!roles.includes(role))
      yield `A limit names the role "${role}", which is not a role of the model. Use one of ${roles.join(', ')}.`;
    if (entity !== undefined && !entities.some(({ name }) => name === entity))
      yield `A limit names the entity "${entity}", which is not in the model. Use one of ${entities.map(({ name }) => name).join(', ')}.`;
    if (operation !== undefined && !operations.some(({ name }) => name === operation))
      yield `A limit names the operation "${operation}", which is not in the model. Use one of ${operations.map(({ name }) => name).join(', ')}.`;
    if (operation !== undefined && (entity !== undefined || action !== undefined))
      yield `The limit of the operation "${operation}" counts its requests. Remove "entity" and "action".`;
    const id = JSON.stringify([role, entity, action, per, operation]);
    if (known.has(id)) yield `The role "${role}" has two limits of the same entity and action per ${per}. Remove one.`;
    known.add(id);
  }
}
