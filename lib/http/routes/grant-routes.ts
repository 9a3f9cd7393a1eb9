import { z } from 'zod';
import { listRevocations, restoreGrants, revokeGrants } from '../../access/grant.ts';
import { grantPeriodArchive, issueGrant, readGrantRequest } from '../../api/grants.ts';
import { requireWholeWriter } from '../../api/imports.ts';
import { busy, RowkeyError } from '../../base/errors.ts';
import { isoInstant } from '../../base/time.ts';
import { parse } from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { PageOptions } from '../../engine/read/retrieve.ts';
import {
  ARCHIVE_NAME,
  addExportedLines,
  listPeriodArchives,
  type PeriodArchive,
  State,
} from '../../features/high-volume-delete/period-archive.ts';
import { bind, bindPage, listOf } from '../bind.ts';
import { PAGE_QUERY } from '../query.ts';
import { NO_STORE, type RequestContext, type Route } from '../route.ts';
import { TIME_BUDGET_MS } from './failed-rows.ts';

/** The grants of the caller's own rows. Their roles are those of all entities; the operation checks those of the requested one. */
export function grantRoute(entities: readonly Entity[]): Route {
  const granting = entities.filter((entity) => entity.access.own);
  return bind(issueGrant(granting), {
    method: 'POST',
    path: 'grants',
    success: { status: 201, description: 'The grant' },
    read: async ({ app, caller, json }) => ({
      ...readGrantRequest(granting, await json()),
      signer: app.signer,
      caller,
    }),
    // The record of the grant is in the audit log by now.
    present({ grant, remember }) {
      remember?.();
      return { status: 201, headers: NO_STORE, body: grant };
    },
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

export function revocationRoutes(operatorRole: string): Route[] {
  const roles = [operatorRole];
  const readIdentity = async ({ json }: RequestContext) => parse(Identity, await json());
  return [
    bindPage(
      {
        name: 'operations-grants-revoked',
        summary: 'List the identities to which no grants are issued',
        kind: 'read',
        roles,
        output: () => listOf(Revocation),
        async run({ engine }, { top, after }: PageOptions) {
          const { items, next } = await listRevocations(engine, { limit: top, after: after?.row });
          return { items, next: next === undefined ? undefined : { row: next } };
        },
      },
      {
        path: 'operations/grants/revoked',
        query: PAGE_QUERY,
        success: { status: 200, description: 'A page of identities' },
      },
    ),
    bind(
      {
        name: 'operations-grants-revoke',
        summary: 'Stop issuing grants to an identity; its existing grants expire within 15 minutes',
        kind: 'write',
        roles,
        input: () => Identity,
        output: () => Revoked,
        run: async ({ engine }, { subject }: z.infer<typeof Identity>) => ({
          subject,
          grantsEndAt: new Date(await revokeGrants(engine, subject)).toISOString(),
        }),
      },
      {
        method: 'POST',
        path: 'operations/grants/revoke',
        success: { status: 200, description: 'Revoked' },
        read: readIdentity,
      },
    ),
    bind(
      {
        name: 'operations-grants-restore',
        summary: 'Issue grants to an identity again',
        kind: 'write',
        roles,
        input: () => Identity,
        run: ({ engine }, { subject }: z.infer<typeof Identity>) => restoreGrants(engine, subject),
      },
      {
        method: 'POST',
        path: 'operations/grants/restore',
        success: { status: 204, description: 'Restored' },
        read: readIdentity,
      },
    ),
  ];
}

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
/** A line has a whole row. */
const MAX_LINES_BYTES = 32 * 1_048_576;
const Lines = z.strictObject({
  name: z.string().max(200).regex(ARCHIVE_NAME, 'must be the name of an archive, as in the list'),
  after: z.int().min(0).describe('How many lines are before them'),
  lines: z.array(z.string().regex(/^\{.*\}$/, 'must be a JSON object on one line')).max(10_000),
  isLast: z.boolean(),
});
type LinesInput = z.infer<typeof Lines> & { readonly entity: Entity };
const Link = z.object({ url: z.url(), expiresAt: z.iso.datetime() });

/** High volume delete pattern: the archives of dropped tables. */
export function periodArchiveRoutes(operatorRole: string): Route[] {
  return [
    bind(
      {
        name: 'operations-period-archives-list',
        summary: 'List the archives of periods past retention',
        kind: 'read',
        roles: [operatorRole],
        output: () => listOf(Archive),
        run: async ({ engine }) => ({ items: (await listPeriodArchives(engine.storage)).map(presentArchive) }),
      },
      {
        method: 'GET',
        path: ARCHIVES,
        success: { status: 200, description: 'The archives by name' },
        read: () => undefined,
      },
    ),
    bind(grantPeriodArchive(operatorRole), {
      method: 'POST',
      path: `${ARCHIVES}/grants`,
      requestBody: () => Named,
      success: { status: 201, description: 'The link', body: () => Link },
      read: async (context) => ({ ...(await findArchive(context)), subject: context.caller.subject }),
      present: (body) => ({ status: 201, headers: NO_STORE, body }),
    }),
    bind(
      {
        name: 'operations-period-archives-import',
        summary: 'Add the next lines of an exported archive; requires a role that may write every row too',
        kind: 'write',
        roles: [operatorRole],
        input: () => Lines,
        output: () => Archive,
        admit: (caller, { entity }: LinesInput, view) => requireWholeWriter(view, entity, caller),
        async run({ engine }, { entity, ...lines }: LinesInput) {
          const archive = await addExportedLines(engine, entity, { ...lines, until: engine.now() + TIME_BUDGET_MS });
          if (archive) return presentArchive(archive);
          throw busy('Another request is changing the archive.');
        },
      },
      {
        method: 'POST',
        path: `${ARCHIVES}/lines`,
        maxBodyBytes: MAX_LINES_BYTES,
        success: { status: 200, description: 'The archive, which is verified after its last line' },
        async read({ app, json }) {
          const lines = parse(Lines, await json());
          const [, name] = ARCHIVE_NAME.exec(lines.name) ?? [];
          const archived = app.entities.filter(({ period }) => period?.archiveTo);
          const entity = archived.find((each) => each.name === name);
          if (entity) return { ...lines, entity };
          throw new RowkeyError('not-found', 'No entity has archives of this name.', {
            field: 'name',
            accepted: archived.map((each) => each.name).join(', ') || 'none: the model has no period with archiveTo',
          });
        },
      },
    ),
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
