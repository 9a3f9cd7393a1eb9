import { z } from 'zod';
import { type Granted, GrantRequest, grantFor, requireGrantable, sortPermissions } from '../../access/grant.ts';
import { limitGrants, requireUnrevoked } from '../../access/grant-limits.ts';
import { beginGrant, recallGrant } from '../../access/grant-memory.ts';
import { hiddenFields, requireRole } from '../../access/rule.ts';
import type { Caller } from '../../access/token.ts';
import { RowkeyError } from '../../base/errors.ts';
import { pick, type Values } from '../../base/values.ts';
import { parse } from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { buildKey } from '../../define/keys/key-template.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import { rolesToGrant } from '../../define/places/readers.ts';
import { noteChange } from '../../engine/note-change.ts';
import { rowUrl, tableUrl } from '../../storage/table-sas.ts';
import { countGrant } from '../../telemetry/metrics.ts';
import { readOwn } from '../own.ts';
import type { RequestContext, Route, RouteResult } from '../route.ts';

const Grant = z.object({
  url: z.url().describe('The URL of the row or the table; append the token as its query'),
  partition: z.string().describe('The only partition that the token gives access to'),
  key: z.record(z.string(), z.unknown()).describe('The values of the key fields, of the partition key for a partition'),
  fields: z.array(z.string()).describe('The fields that the API shows to the caller; the rows have all'),
  token: z.string(),
  permissions: z.string(),
  expiresAt: z.iso.datetime(),
});

type Issued = z.output<typeof Grant>;

/** Shared access signatures pattern: a token with which a client reads or writes its own rows directly in storage. */
export function grantRoute(entities: readonly Entity[]): Route {
  const granting = entities.filter((entity) => entity.access.own);
  return {
    name: 'grants-create',
    method: 'POST',
    path: 'grants',
    // The roles of the requested entity are checked when the body is read.
    roles: [...new Set(granting.flatMap(rolesToGrant))],
    summary: "Get a shared access signature for the caller's own rows",
    requestBody: () => GrantRequest,
    success: { status: 201, description: 'The grant', body: () => Grant },
    handle: (context) => issueGrant(granting, context),
  };
}

async function issueGrant(granting: readonly Entity[], context: RequestContext): Promise<RouteResult> {
  const { app } = context;
  const asked = parse(GrantRequest, await context.json());
  const entity = granting.find(({ name }) => name === asked.entity);
  const accepted = granting.map(({ name }) => name).join(', ');
  if (!entity)
    throw new RowkeyError('invalid-input', `No grants are issued for "${asked.entity.slice(0, 100)}".`, {
      field: 'entity',
      accepted,
    });
  requireRole(context.caller, rolesToGrant(entity));
  requireGrantable(entity, asked.permissions);
  const { engine, signer } = app;
  const { caller } = context;
  await limitGrants(engine, caller.subject);
  const permissions = sortPermissions(asked.permissions);
  const key = [caller.subject, entity.name, permissions, ownerClaim(entity, caller), caller.roles];
  const headers = { 'cache-control': 'no-store' };
  const known = asked.renew ? undefined : recallGrant<Issued>(engine, key);
  if (known) return { status: 201, headers, body: known };
  const remember = beginGrant(engine, key);
  const now = await requireUnrevoked(engine, caller.subject);
  const granted = await findGranted(context, entity);
  const { table, partition, row } = granted.address;
  const grant = grantFor(entity, granted.address, { permissions, now });
  const hidden = hiddenFields(entity, caller);
  const until = grant.expiresAt.toISOString();
  const { storage } = engine;
  const body: Issued = {
    url: row === undefined ? tableUrl(storage, table) : rowUrl(storage, { table, partition, row }),
    partition,
    key: granted.key,
    fields: Object.keys(entity.columns).filter((field) => !hidden.includes(field)),
    token: await signer().sign(grant),
    permissions,
    expiresAt: until,
  };
  noteChange(engine, { operation: 'grant', entity: entity.name, address: granted.address, permissions, until });
  countGrant({ entity: entity.name });
  return { status: 201, headers, body, onRecorded: () => remember(body, now) };
}

/** The claim that decides which rows are the caller's own. */
function ownerClaim({ access: { own } }: Entity, { claims }: Caller): string | undefined {
  const owner = own && 'through' in own ? own.through.access.own : own;
  return owner && 'claim' in owner ? claims[owner.claim] : undefined;
}

/** The caller's own row, or the partition that belongs to it, with the values of its key. */
async function findGranted(context: RequestContext, entity: Entity): Promise<{ address: Granted; key: Values }> {
  const { own } = entity.access;
  if (!own || !('through' in own)) {
    const values = await readOwn(context, entity);
    return { address: addressOf(entity, values), key: pick(values, entity.keyFields) };
  }
  const values = await readOwn(context, own.through);
  const address = { table: entity.table, partition: buildKey(entity.partition, values) };
  return { address, key: pick(values, entity.partition.fields) };
}
