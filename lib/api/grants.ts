import { z } from 'zod';
import {
  admitGrant,
  beginGrant,
  type Granted,
  GrantRequest,
  grantFor,
  limitGrants,
  recallGrant,
  requireGrantable,
  requireUnrevoked,
  sortPermissions,
  validityAt,
} from '../access/grant.ts';
import { rowsWithin } from '../access/granted-rows.ts';
import { limitOf, resolveRule } from '../access/limit.ts';
import { readOwn } from '../access/own.ts';
import { hiddenFields, requireRole, requireWholeReader } from '../access/rule.ts';
import { type Caller, toGrantee } from '../access/token.ts';
import { RowkeyError } from '../base/errors.ts';
import { pick, type Values } from '../base/values.ts';
import { isWithin, narrow } from '../define/codec/limit.ts';
import { parse } from '../define/codec/validation.ts';
import { claimsIn, declaredIn } from '../define/declaration/access.ts';
import type { Entity } from '../define/declaration/entity.ts';
import { tableOfPeriod } from '../define/keys/calendar.ts';
import { buildKey } from '../define/keys/key-template.ts';
import { addressOf } from '../define/places/index-entries.ts';
import { rolesToGrant } from '../define/places/readers.ts';
import type { Engine } from '../engine/engine.ts';
import { type NotedChange, noteChange } from '../engine/note-change.ts';
import { notFound } from '../engine/read/entity-rows.ts';
import type { PeriodArchive } from '../features/high-volume-delete/period-archive.ts';
import { READ_PERMISSIONS, signBlobUrl } from '../storage/blobs.ts';
import { locateRow, type TableSasSigner } from '../storage/table-sas.ts';
import { count } from '../telemetry/metrics.ts';
import type { Operation } from './operation.ts';

const Grant = z
  .object({
    url: z.url().describe('The URL of the row or the table; append the token as its query'),
    endpoint: z.url().describe('The table service, as the SDKs of storage take it with the table and the token'),
    table: z.string(),
    partition: z.string().describe('The only partition that the token gives access to'),
    row: z.string().optional().describe('The only row, for a grant of one row'),
    key: z
      .record(z.string(), z.unknown())
      .describe('The values of the key fields, of the partition key for a partition'),
    fields: z.array(z.string()).describe('The fields that the API shows to the caller; the rows have all'),
    token: z.string(),
    permissions: z.string(),
    expiresAt: z.iso.datetime(),
  })
  .meta({ title: 'grant' });

type Issued = z.output<typeof Grant>;

interface GrantInput {
  readonly entity: Entity;
  readonly permissions: string;
  /** True for a new grant instead of a repeated one. */
  readonly renew: boolean;
  readonly signer: () => TableSasSigner;
  readonly caller: Caller;
}

interface IssuedGrant {
  readonly grant: Issued;
  /** Remembers a new grant, to be called when its record is in the audit log. */
  readonly remember?: () => void;
}

/** Reads a request for a grant of one of the entities. Throws `invalid-input`. */
export function readGrantRequest(
  granting: readonly Entity[],
  body: unknown,
): Pick<GrantInput, 'entity' | 'permissions' | 'renew'> {
  const { entity: name, permissions, renew = false } = parse(GrantRequest, body);
  const entity = granting.find((each) => each.name === name);
  if (entity) return { entity, permissions, renew };
  throw new RowkeyError('invalid-input', `No grants are issued for "${name.slice(0, 100)}".`, {
    field: 'entity',
    accepted: granting.map((each) => each.name).join(', ') || 'none: the model has no entity with access.own',
  });
}

/** Shared access signatures pattern: a token with which a client reads or writes its own rows directly in storage. */
export function issueGrant(granting: readonly Entity[]): Operation<GrantInput, IssuedGrant> {
  return {
    name: 'grants-create',
    summary: "Get a shared access signature for the caller's own rows",
    kind: 'write',
    roles: [...new Set(granting.flatMap(rolesToGrant))],
    input: () => GrantRequest,
    output: () => Grant,
    admit(caller, { entity, permissions }) {
      requireRole(caller, rolesToGrant(entity));
      requireGrantable(entity, permissions);
    },
    async run({ engine }, { entity, renew, signer, caller: whole, ...asked }) {
      const caller = toGrantee(whole, entity.access.steward);
      await limitGrants(engine, caller.subject);
      const permissions = sortPermissions(asked.permissions);
      const key = [caller.subject, entity.name, permissions, decidingClaims(entity, caller), caller.roles];
      const known = renew ? undefined : recallGrant<Issued>(engine, key);
      if (known) return { grant: known };
      const remember = beginGrant(engine, key);
      const now = await requireUnrevoked(engine, caller.subject);
      const granted = await findGranted({ engine, caller }, entity);
      const { partition } = granted.address;
      const signed = grantFor(entity, granted.address, { permissions, now });
      const until = signed.expiresAt.toISOString();
      const grant: Issued = {
        ...(await locateRow(engine.storage, granted.address)),
        partition,
        ...(granted.address.row === undefined ? {} : { row: granted.address.row }),
        key: granted.key,
        fields: Object.keys(entity.columns).filter((field) => !granted.hidden.includes(field)),
        token: await signer().sign(signed),
        permissions,
        expiresAt: until,
      };
      noteGrant(engine, { entity: entity.name, address: granted.address, permissions, until });
      return { grant, remember: () => remember(grant, now) };
    },
  };
}

/** Notes a grant for the audit log, and counts it. */
export function noteGrant(engine: Engine, grant: Omit<NotedChange, 'operation'>): void {
  noteChange(engine, { ...grant, operation: 'grant' });
  count.grant({ entity: grant.entity });
}

/** The claims that decide which rows are the caller's own, and which of them the rules let the caller read. */
function decidingClaims({ access }: Entity, { claims }: Caller): Caller['claims'][string][] {
  const { own } = access;
  const through = own && 'through' in own ? own.through.access : undefined;
  const owner = through ? through.own : own;
  const ruled = [access, ...(through ? [through] : [])];
  // A term of another entity, such as own(other), compares the row that is the caller's by the claim of that entity.
  const owners = [owner, ...ruled.flatMap(declaredIn).map((of) => of.access.own)];
  const ofOwners = owners.flatMap((own) => (own && 'claim' in own ? [own] : []));
  const names = [...ofOwners, ...ruled.flatMap(claimsIn)].map(({ claim }) => claim);
  return names.map((name) => claims[name] ?? '');
}

/**
 * The caller's own row, or the rows of the partition that belongs to it which the rules let the caller read, with the values of the key.
 * Throws `not-found`, and `forbidden` if that would open more than the caller may read.
 */
async function findGranted(subject: Reader, entity: Entity): Promise<Found> {
  const { engine, caller } = subject;
  const { own } = entity.access;
  if (!own || !('through' in own)) {
    const values = await readOwn(engine, caller, entity);
    if (!isWithin(await limitOf(subject, entity, 'read'), values))
      throw notFound(entity, pick(values, entity.keyFields));
    // A group of split is in a row of its own.
    const hidden = await requireShown(subject, entity, values, entity.apartFields);
    return { address: addressOf(entity, values), key: pick(values, entity.keyFields), hidden };
  }
  const values = await readOwn(engine, caller, own.through);
  // The partition is that of an entity which the caller may read.
  if (!isWithin(await limitOf(subject, own.through, 'read'), values))
    throw notFound(own.through, pick(values, own.through.keyFields));
  const key = pick(values, entity.partition.fields);
  const limit = narrow(await limitOf(subject, entity, 'read'), key);
  const rows = limit && rowsWithin(entity, limit);
  if (limit && !rows)
    throw new RowkeyError(
      'forbidden',
      `No grant can be issued: the rules of ${entity.name} let the caller read some rows of the partition only, which are not one range of row keys. Read them through the API.`,
    );
  const hidden = await requireShown(subject, entity, key, []);
  return { address: { table: entity.table, partition: buildKey(entity.partition, values), rows }, key, hidden };
}

interface Found {
  readonly address: Granted;
  readonly key: Values;
  /** The fields that the API does not show to the caller. */
  readonly hidden: readonly string[];
}

interface Reader {
  readonly engine: Engine;
  readonly caller: Caller;
}

/**
 * Returns the fields that are hidden from the caller and not in clear in rows with these values: encrypted, or apart in further rows. Throws
 * `forbidden` for any other hidden field, because a signature opens whole rows.
 */
async function requireShown(
  subject: Reader,
  entity: Entity,
  known: Values,
  apart: readonly string[],
): Promise<readonly string[]> {
  const { encrypted, access, name } = entity;
  const hidden: string[] = [];
  for (const field of hiddenFields(entity, subject.caller)) {
    const rule = access.unveiled?.[field];
    if (rule && narrow(await resolveRule(subject, entity, rule), known) === undefined) continue;
    hidden.push(field);
    if (encrypted.includes(field) || apart.includes(field)) continue;
    const way =
      access.own && 'through' in access.own ? 'an entity of its own' : 'a group of split or an entity of its own';
    throw new RowkeyError(
      'forbidden',
      `No grant can be issued: it opens whole rows, and "${field}" of ${name} is restricted. Read the rows through the API; the model can keep the field in ${way}.`,
      { field },
    );
  }
  return hidden;
}

interface ArchiveInput {
  readonly entity: Entity;
  readonly archive: PeriodArchive;
  readonly subject: string;
}

/** Signs a link to download the archive of a period. The caller must be able to read the whole entity. */
export function grantPeriodArchive(operatorRole: string): Operation<ArchiveInput, { url: string; expiresAt: string }> {
  return {
    name: 'operations-period-archives-grant',
    summary: 'Get a link to download an archive from storage; requires a role that may read the whole entity',
    kind: 'write',
    roles: [operatorRole],
    admit: (caller, { entity }) => requireWholeReader(entity, toGrantee(caller, entity.access.steward)),
    async run({ engine }, { entity, archive, subject }) {
      const times = validityAt(await admitGrant(engine, subject));
      const url = await signBlobUrl(engine.storage, archive, { permissions: READ_PERMISSIONS, ...times });
      const address = { table: tableOfPeriod(entity.table, archive.period), partition: '' };
      const until = times.expiresAt.toISOString();
      noteGrant(engine, { entity: entity.name, address, permissions: READ_PERMISSIONS, until });
      return { url, expiresAt: until };
    },
  };
}
