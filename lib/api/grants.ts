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
import { isWithin, limitOf, narrow } from '../access/limit.ts';
import { readOwn } from '../access/own.ts';
import { hiddenFields, requireRole, requireWholeReader } from '../access/rule.ts';
import type { Caller } from '../access/token.ts';
import { RowkeyError } from '../base/errors.ts';
import { pick, type Values } from '../base/values.ts';
import { parse } from '../define/codec/validation.ts';
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
import { rowUrl, type TableSasSigner } from '../storage/table-sas.ts';
import { count } from '../telemetry/metrics.ts';
import type { Operation } from './operation.ts';

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
    accepted: granting.map((each) => each.name).join(', '),
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
    async run({ engine }, { entity, renew, signer, caller, ...asked }) {
      await limitGrants(engine, caller.subject);
      const permissions = sortPermissions(asked.permissions);
      const key = [caller.subject, entity.name, permissions, ownerClaim(entity, caller), caller.roles];
      const known = renew ? undefined : recallGrant<Issued>(engine, key);
      if (known) return { grant: known };
      const remember = beginGrant(engine, key);
      const now = await requireUnrevoked(engine, caller.subject);
      const granted = await findGranted(engine, caller, entity);
      const { partition } = granted.address;
      const signed = grantFor(entity, granted.address, { permissions, now });
      const hidden = hiddenFields(entity, caller);
      const until = signed.expiresAt.toISOString();
      const grant: Issued = {
        url: rowUrl(engine.storage, granted.address),
        partition,
        key: granted.key,
        fields: Object.keys(entity.columns).filter((field) => !hidden.includes(field)),
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

/** The claim that decides which rows are the caller's own. */
function ownerClaim({ access: { own } }: Entity, { claims }: Caller): Caller['claims'][string] | undefined {
  const owner = own && 'through' in own ? own.through.access.own : own;
  return owner && 'claim' in owner ? claims[owner.claim] : undefined;
}

/** The caller's own row, or the partition that belongs to it, with the values of its key. */
async function findGranted(engine: Engine, caller: Caller, entity: Entity): Promise<{ address: Granted; key: Values }> {
  const { own } = entity.access;
  if (!own || !('through' in own)) {
    const values = await readOwn(engine, caller, entity);
    if (!isWithin(await limitOf({ engine, caller }, entity, 'read'), values))
      throw notFound(entity, pick(values, entity.keyFields));
    return { address: addressOf(entity, values), key: pick(values, entity.keyFields) };
  }
  const values = await readOwn(engine, caller, own.through);
  if (narrow(await limitOf({ engine, caller }, entity, 'read'), pick(values, entity.partition.fields)))
    throw new RowkeyError(
      'forbidden',
      `No grant can be issued: the rules of ${entity.name} let the caller read some rows of the partition only.`,
    );
  const address = { table: entity.table, partition: buildKey(entity.partition, values) };
  return { address, key: pick(values, entity.partition.fields) };
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
    admit: (caller, { entity }) => requireWholeReader(entity, caller),
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
