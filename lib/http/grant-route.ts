import { z } from 'zod';
import { type Granted, GrantRequest, grantFor, requireGrantable } from '../access/grant.ts';
import { admitGrant } from '../access/grant-limits.ts';
import type { Entity } from '../define/entity.ts';
import { addressOf } from '../define/index-entries.ts';
import { buildKey } from '../define/key-template.ts';
import { parse } from '../define/validation.ts';
import { noteChange } from '../engine/note-change.ts';
import { RowkeyError } from '../errors.ts';
import { rowUrl, tableUrl } from '../storage/table-sas-signer.ts';
import { countGrant } from '../telemetry/metrics.ts';
import { readOwn } from './own.ts';
import type { RequestContext, Route, RouteResult } from './route.ts';

const Grant = z.object({
  url: z.url().describe('Of the row, or of the table; the token goes into its query'),
  partition: z.string().describe('All that the token opens lies in it'),
  token: z.string(),
  permissions: z.string(),
  expiresAt: z.iso.datetime(),
});

/** Shared access signatures pattern: a token with which a client reads, or writes, its own straight in storage. */
export function grantRoute(entities: readonly Entity[]): Route {
  const granting = entities.filter((entity) => entity.access.own);
  return {
    name: 'grants-create',
    method: 'POST',
    path: 'grants',
    roles: [
      ...new Set(
        granting.flatMap(({ access: { own, read } }) => (own && 'through' in own ? own.through.access.read : read)),
      ),
    ],
    summary: "A shared access signature for the caller's own entity",
    requestBody: GrantRequest,
    success: { status: 201, description: 'The grant', body: Grant },
    handle: (call) => issue(granting, call),
  };
}

async function issue(granting: readonly Entity[], call: RequestContext): Promise<RouteResult> {
  const { app } = call;
  const asked = parse(GrantRequest, await call.json());
  const entity = granting.find(({ name }) => name === asked.entity);
  const accepted = granting.map(({ name }) => name).join(', ');
  if (!entity)
    throw new RowkeyError('invalid-input', 'No grant is given for this entity.', { field: 'entity', accepted });
  requireGrantable(entity, asked.permissions);
  const { storage } = app.engine;
  const now = await admitGrant(app.engine, call.caller.subject);
  const granted = await grantedTo(call, entity);
  const { table, partition, row } = granted;
  const grant = grantFor(entity, granted, { permissions: asked.permissions, now });
  const body = {
    url: row === undefined ? tableUrl(storage, table) : rowUrl(storage, { table, partition, row }),
    partition,
    token: await app.signer().sign(grant),
    permissions: grant.permissions,
    expiresAt: grant.expiresAt,
  };
  const until = grant.expiresAt.toISOString();
  const { permissions } = grant;
  noteChange(app.engine, { operation: 'grant', entity: entity.name, address: granted, permissions, until });
  countGrant({ entity: entity.name });
  return { status: 201, headers: { 'cache-control': 'no-store' }, body };
}

/** The own row, or the partition that it leads to. */
async function grantedTo(call: RequestContext, entity: Entity): Promise<Granted> {
  const { own } = entity.access;
  if (!own || !('through' in own)) return addressOf(entity, await readOwn(call, entity));
  return { table: entity.table, partition: buildKey(entity.partition, await readOwn(call, own.through)) };
}
