import { z } from 'zod';
import { GrantRequest } from '../../access/grant.ts';
import { listRevocations, restoreGrants, revokeGrants } from '../../access/grant-limits.ts';
import { Grant, grantPeriodArchive, issueGrant, readGrantRequest } from '../../api/grants.ts';
import { RowkeyError } from '../../base/errors.ts';
import { isoInstant } from '../../base/time.ts';
import { parse } from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { listPeriodArchives, type PeriodArchive, State } from '../../features/high-volume-delete/period-archive.ts';
import { bind } from '../bind.ts';
import { PAGE_QUERY, respondWithPage } from '../query.ts';
import type { OperatorRoute, RequestContext, Route } from '../route.ts';

const NO_STORE = { 'cache-control': 'no-store' };

/** The grants of the caller's own rows. Their roles are those of all entities; the operation checks those of the requested one. */
export function grantRoute(entities: readonly Entity[]): Route {
  const granting = entities.filter((entity) => entity.access.own);
  return bind(issueGrant(granting), {
    name: 'grants-create',
    method: 'POST',
    path: 'grants',
    summary: "Get a shared access signature for the caller's own rows",
    requestBody: () => GrantRequest,
    success: { status: 201, description: 'The grant', body: () => Grant },
    read: async ({ app, caller, json }) => ({
      ...readGrantRequest(granting, await json()),
      signer: app.signer,
      caller,
    }),
    present: ({ grant, onRecorded }) => ({
      status: 201,
      headers: NO_STORE,
      body: grant,
      ...(onRecorded ? { onRecorded } : {}),
    }),
  });
}

const Identity = z.strictObject({
  subject: z.string().min(1).max(1_000).describe('The claim "sub" of its token; the audit log has it as "by"'),
});
const Revoked = Identity.extend({
  grantsEndAt: z.iso.datetime().describe('All grants of the identity have expired by then'),
});
const Revocation = z.object({
  subject: z.string().describe('The claim "sub" of the tokens of the identity'),
  revokedAt: z.iso.datetime(),
});

const REVOKED_PATH = 'operations/grants/revoked';

export const revocationRoutes: readonly OperatorRoute[] = [
  {
    name: 'operations-grants-revoked',
    method: 'GET',
    path: REVOKED_PATH,
    query: PAGE_QUERY,
    summary: 'List the identities to which no grants are issued',
    success: {
      status: 200,
      description: 'A page of identities',
      body: () => z.object({ items: z.array(Revocation) }),
      headers: ['Link'],
    },
    handle: (context) =>
      respondWithPage(context, { path: REVOKED_PATH }, async ({ top, after }) => {
        const { items, next } = await listRevocations(context.app.engine, { limit: top, after: after?.row });
        return { body: { items }, next: next === undefined ? undefined : { row: next } };
      }),
  },
  {
    name: 'operations-grants-revoke',
    method: 'POST',
    path: 'operations/grants/revoke',
    summary: 'Stop issuing grants to an identity; its existing grants expire within 15 minutes',
    requestBody: () => Identity,
    success: { status: 200, description: 'Revoked', body: () => Revoked },
    handle: async (context) => {
      const { subject } = parse(Identity, await context.json());
      const grantsEndAt = new Date(await revokeGrants(context.app.engine, subject)).toISOString();
      return { status: 200, body: { subject, grantsEndAt } };
    },
  },
  {
    name: 'operations-grants-restore',
    method: 'POST',
    path: 'operations/grants/restore',
    summary: 'Issue grants to an identity again',
    requestBody: () => Identity,
    success: { status: 204, description: 'Restored' },
    handle: async (context) => {
      await restoreGrants(context.app.engine, parse(Identity, await context.json()).subject);
      return { status: 204 };
    },
  },
];

const ARCHIVES = 'operations/period-archives';
const Archive = z.object({
  name: z.string(),
  entity: z.string(),
  period: z.string().describe('A day, a month or a year, in UTC'),
  rows: z.int(),
  bytes: z.int().describe('Compressed'),
  state: State.describe('Only a verified archive has all rows of its table'),
  hash: z.string().describe('SHA-256 of the hash of the lines before the last line, followed by the last line'),
  changedAt: z.iso.datetime(),
});
const Named = z.strictObject({ name: z.string().min(1).max(200) });
const Link = z.object({ url: z.url(), expiresAt: z.iso.datetime() });

/** High volume delete pattern: the archives of dropped tables. */
export function periodArchiveRoutes(operatorRole: string): readonly OperatorRoute[] {
  return [
    {
      name: 'operations-period-archives-list',
      method: 'GET',
      path: ARCHIVES,
      summary: 'List the archives of periods past retention',
      success: { status: 200, description: 'The archives by name', body: () => z.object({ items: z.array(Archive) }) },
      handle: async ({ app }) => {
        const archives = await listPeriodArchives(app.engine.storage);
        return { status: 200, body: { items: archives.map(presentArchive) } };
      },
    },
    bind(grantPeriodArchive(operatorRole), {
      name: 'operations-period-archives-grant',
      method: 'POST',
      path: `${ARCHIVES}/grants`,
      summary: 'Get a link to download an archive from storage; requires a role that may read the whole entity',
      requestBody: () => Named,
      success: { status: 201, description: 'The link', body: () => Link },
      read: async (context) => ({ ...(await findArchive(context)), subject: context.caller.subject }),
      present: (body) => ({ status: 201, headers: NO_STORE, body }),
    }),
  ];
}

/** Throws `not-found`. */
async function findArchive({ app, json }: RequestContext): Promise<{ entity: Entity; archive: PeriodArchive }> {
  const { name } = parse(Named, await json());
  const [entityName = ''] = name.split('/');
  const entity = app.entities.find((each) => each.name === entityName);
  const archives = entity ? await listPeriodArchives(app.engine.storage, entity.name) : [];
  const archive = archives.find((each) => each.name === name);
  if (entity && archive) return { entity, archive };
  throw new RowkeyError('not-found', 'Archive not found.', {
    field: 'name',
    accepted: `a name that GET ${ARCHIVES} returns`,
  });
}

function presentArchive({ name, entity, period, rows, length, state, hash, modifiedAt }: PeriodArchive) {
  return { name, entity, period, rows, bytes: length, state, hash, changedAt: isoInstant(modifiedAt) };
}
