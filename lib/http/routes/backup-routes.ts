import { z } from 'zod';
import { requireReader } from '../../access/rule.ts';
import type { Caller } from '../../access/token.ts';
import { getEntity } from '../../api/get.ts';
import { asImported, requireWholeWriter } from '../../api/imports.ts';
import type { View } from '../../api/operation.ts';
import { hasCode, RowkeyError } from '../../base/errors.ts';
import { DAY_MS, isoInstant, toUtc } from '../../base/time.ts';
import type { Values } from '../../base/values.ts';
import { parse, readableSchema } from '../../define/codec/validation.ts';
import { archivedChildren, type Entity, nameOfKind } from '../../define/declaration/entity.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import type { PageOptions } from '../../engine/read/retrieve.ts';
import { requireTold } from '../../engine/read/told.ts';
import { readChanges } from '../../operations/audit-log.ts';
import { type DeletedRow, readVersions } from '../../operations/backup/history.ts';
import { isTableOf } from '../../operations/backup/read-backup.ts';
import { compareWithPast, restoreInPlace } from '../../operations/backup/restore-in-place.ts';
import { readBackupStatus } from '../../operations/backup/status.ts';
import { type Undeleted, undelete } from '../../operations/backup/undelete.ts';
import { padTime } from '../../storage/row-journal.ts';
import { bind, bindPage, listOf, readKey } from '../bind.ts';
import { Problem, reportProblem } from '../problem.ts';
import { PAGE_QUERY, queryError, readAt } from '../query.ts';
import { NO_STORE, type RequestContext, type Route, toPathTemplate } from '../route.ts';

/** What operators and the roles of the backup have of it: the versions of an entity, and deleted entities back. */

/** A day of the journal is read at a time. */
const MAX_DAYS = 31;
/** Each is a read of the entity. */
const MAX_VERSIONS = 100;

interface HistoryInput extends PageOptions, AskedSpan {
  readonly key: Values;
}

interface AskedSpan {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

interface Span {
  readonly from: string;
  readonly to: string;
}

/** The versions of an entity, as far as the caller may read each of them now. */
export function historyRoute(entity: Entity, roles: readonly string[]): Route {
  const Version = z.object({
    at: z.string().describe('When the version began'),
    isDeleted: z.boolean().describe('True if there was no entity, or none within reach of the caller'),
    values: readableSchema(entity).optional(),
  });
  return bindPage(
    {
      name: `operations-history-${nameOfKind(entity).replace('/', '-')}`,
      summary: `List what an entity of ${entity.name} was in a span of time; requires a role that reads it now`,
      kind: 'read',
      entity,
      roles,
      output: () => listOf(Version),
      admit: (caller) => requireReader(entity, caller),
      async run(view, { key, top, after, ...asked }: HistoryInput) {
        if (entity.existing) requireTold(entity);
        const { from, to } = spanOf(view.engine.now(), asked);
        const span = { from: after?.row ?? from, to, top: Math.min(top ?? MAX_VERSIONS, MAX_VERSIONS) };
        const { items, next } = await readVersions(view.engine, addressOf(entity, key), span);
        const read = async ({ at, engine }: (typeof items)[number]) => {
          try {
            const { values } = await getEntity(entity).run({ ...view, engine }, { key });
            return { at, isDeleted: false, values };
          } catch (error) {
            if (!hasCode(error, 'not-found')) throw error;
            return { at, isDeleted: true };
          }
        };
        const versions: Awaited<ReturnType<typeof read>>[] = [];
        for (const item of items) versions.push(await read(item));
        return { items: versions, next: next === undefined ? undefined : { row: next } };
      },
    },
    {
      path: `operations/history/${toPathTemplate([...nameOfKind(entity).split('/')], entity.keyFields)}`,
      query: {
        from: 'Start, an ISO instant; by default a day ago',
        to: `End, an ISO instant, at most ${MAX_DAYS} days after from; by default now`,
        ...PAGE_QUERY,
      },
      success: { status: 200, description: 'The versions, from the oldest' },
      // What is not given stays so: the next page has the same query, and is asked for later.
      read: (context) => ({
        key: readKey(entity, context),
        from: readAt(context.query, 'from'),
        to: readAt(context.query, 'to'),
      }),
    },
  );
}

function spanOf(now: number, asked: AskedSpan): Span {
  const { to = isoInstant(now) } = asked;
  const { from = isoInstant(Date.parse(to) - DAY_MS) } = asked;
  const [first, last] = [padTime(from), padTime(to)];
  if (first >= last) throw queryError('to', 'must be after from', 'an instant after from');
  if (Date.parse(to) - Date.parse(from) > MAX_DAYS * DAY_MS)
    throw queryError('to', 'is too long after from', `at most ${MAX_DAYS} days after from`);
  return { from: first, to: last };
}

const Count = z.int().min(0);
const Bytes = Count.describe('In bytes');
const Time = z.iso.datetime();
const Status = z.object({
  days: z.int().describe('The retention'),
  state: z
    .enum(['begins', 'fine', 'overdue', 'unknown'])
    .describe(
      '`begins` before the first snapshot, `overdue` if the last one is older than 26 hours, `unknown` if its account does not respond',
    ),
  restorableFrom: Time.optional().describe('The first instant that can be restored; absent before the first snapshot'),
  restorableUntil: Time.optional().describe('The last instant that the account of the backup has'),
  snapshots: Count.describe('Within the retention'),
  last: z
    .object({
      id: z.string(),
      begunAt: Time,
      finishedAt: Time,
      tables: Count,
      rows: Count,
      parts: Count,
      bytes: Bytes,
      took: z.object({ seconds: z.number(), transactions: Count, bytes: Bytes }).optional(),
      blobs: z
        .object({ count: Count, bytes: Bytes })
        .describe('Copies of files, large texts, archives and the audit log'),
    })
    .optional()
    .describe('The last snapshot'),
  waiting: z
    .object({ blobs: Count, bytes: Bytes, since: Time.optional() })
    .describe('Changes that are in accounts of the app, because that of the backup did not respond'),
  drill: z
    .object({ at: Time, partitions: Count, rows: Count, differences: Count })
    .optional()
    .describe('The last restore of a sample, compared with what is stored'),
  verification: z
    .object({ at: Time, problems: Count })
    .optional()
    .describe('The last time that the command compared the backup with its checksums'),
  away: z.array(z.string()).optional().describe('The storage accounts that do not respond; absent if all respond'),
  advice: z.array(z.string()).describe('What to do next or can be done, with commands'),
});

/** What there is of the backup. */
export function backupRoute(days: number, operatorRole: string): Route {
  return bind(
    {
      name: 'operations-backup',
      summary: 'Get from when until when everything can be restored, and what the last snapshot took',
      kind: 'read',
      roles: [operatorRole],
      output: () => Status,
      async run({ engine }) {
        const { away, ...status } = await readBackupStatus(engine, days);
        return { days, ...status, ...(away.length > 0 ? { away } : {}) };
      },
    },
    {
      method: 'GET',
      path: 'operations/backup',
      success: { status: 200, description: 'The backup' },
      read: () => undefined,
      present: (body) => ({ status: 200, headers: NO_STORE, body }),
    },
  );
}

const Instant = z.iso.datetime({ offset: true });
const Undelete = z.strictObject({
  from: Instant.describe('Entities that were deleted from this instant'),
  to: Instant.describe('to this one, exclusive'),
  by: z.string().optional().describe('by this subject, the claim "sub" of its tokens; by default by anybody'),
  dryRun: z.boolean().optional().describe('True to change nothing, and to list what would be undeleted'),
});
interface UndeleteInput extends PageOptions, z.infer<typeof Undelete> {}

/** Creates the entities again that the audit log says were deleted in a span, unless they exist. */
export function undeleteRoute(entity: Entity, operatorRole: string): Route {
  const name = nameOfKind(entity);
  const Result = z.object({
    entity: z.string(),
    key: z.record(z.string(), z.unknown()).optional(),
    outcome: z.enum(['restored', 'exists', 'failed']),
    problem: Problem.optional(),
    lost: z.array(z.string()).describe('Fields that could not be restored').optional(),
  });
  return bindPage<UndeleteInput, { items: Undeleted[]; next: { row: string } | undefined }>(
    {
      name: `operations-undelete-${name.replace('/', '-')}`,
      summary: `Create entities of ${entity.name} again that were deleted, as they were before; requires a role that may write every row too`,
      kind: 'write',
      entity,
      roles: [operatorRole],
      input: () => Undelete,
      output: () => listOf(Result),
      admit: (caller, _, view) => requireWholeWriter(view, entity, caller),
      async run({ engine }, { from, to, by, dryRun = false, top, after }) {
        const span = { from: Date.parse(from), to: Date.parse(to), limit: top ?? MAX_VERSIONS, after };
        const { items, next } = await readChanges(engine, span);
        const isWanted = (change: (typeof items)[number]): change is DeletedRow =>
          change.operation === 'delete' &&
          change.entity === entity.name &&
          change.row !== undefined &&
          (by === undefined || change.by === by);
        const deletes = items.filter(isWanted);
        return { items: await undelete(engine, asImported(entity), { deletes, isTrial: dryRun }), next };
      },
    },
    {
      method: 'POST',
      path: `operations/undelete/${name}`,
      query: PAGE_QUERY,
      success: { status: 200, description: 'What became of each entity; repeat with the Link header, if there is one' },
      async read(context) {
        const given = parse(Undelete, await context.json());
        if (Date.parse(given.from) < Date.parse(given.to)) return given;
        throw new RowkeyError('invalid-input', '"to" must be after "from".', {
          field: 'to',
          accepted: 'a later instant',
        });
      },
      present: ({ items }, context) => ({ items: items.map((item) => presentOne(item, context)) }),
    },
  );
}

const InPlace = z.strictObject({ at: Instant.describe('The instant whose state is wanted') });
const Comparison = InPlace.extend({
  partition: z.string().optional().describe('Only this partition key'),
  row: z.string().optional().describe('With partition: only the entity at this row key, and its children'),
});
interface ComparisonInput extends PageOptions, z.infer<typeof Comparison> {}
/** An entity that differs, as a comparison returns it and a restore in place takes it. */
const Chosen = z.strictObject({
  entity: z.string().describe('Its kind: that of the path, or of its children'),
  table: z.string(),
  partition: z.string(),
  row: z.string(),
  version: z.string().optional().describe('The state now; absent if there is no such entity'),
});
const MAX_CHOSEN = 100;
const Choice = InPlace.extend({ items: z.array(Chosen).min(1).max(MAX_CHOSEN) });

/** Puts entities back to what they were at an instant: what differs from it, and the restore of what the caller chooses of that. */
export function inPlaceRoutes(entity: Entity, operatorRole: string, main: Entity | undefined): Route[] {
  const name = nameOfKind(entity);
  const withChildren = (one: Entity) => [one, ...(one.isArchive ? archivedChildren(one) : one.children)];
  const kinds = withChildren(entity).map(asImported);
  const archived = main && withChildren(main);
  const selectionOf = (at: string) => ({ kinds, archived, at: padTime(toUtc(at) ?? at) });
  const key = z.record(z.string(), z.unknown());
  const lost = z.array(z.string()).describe('Fields that cannot be restored').optional();
  const common = {
    entity,
    roles: [operatorRole],
    async admit(caller: Caller, _: unknown, view: View) {
      for (const kind of kinds) await requireWholeWriter(view, kind, caller, ['create', 'update', 'delete']);
    },
  };
  const fileName = name.replace('/', '-');
  return [
    bindPage<ComparisonInput, Awaited<ReturnType<typeof compareWithPast>>>(
      {
        ...common,
        kind: 'read',
        name: `operations-differences-${fileName}`,
        summary: `List what of ${entity.name} and its children differs from an instant; requires a role that may write every row too`,
        input: () => Comparison,
        output: () =>
          listOf(
            Chosen.extend({
              key,
              change: z.enum(['create', 'replace', 'delete']).describe('What a restore does'),
              lost,
            }),
          ),
        run: ({ engine }, { at, ...page }) => compareWithPast(engine, selectionOf(at), page),
      },
      {
        method: 'POST',
        path: `operations/differences/${name}`,
        query: PAGE_QUERY,
        success: { status: 200, description: 'A page of differences; repeat with the Link header, if there is one' },
        async read(context) {
          const given = parse(Comparison, await context.json());
          requirePast(context.engine.now(), given.at);
          if (given.row === undefined || given.partition !== undefined) return given;
          throw new RowkeyError('invalid-input', '"row" needs "partition".', { field: 'partition' });
        },
        present: ({ items }) => ({
          items: items.map(({ entity: kind, address, lost: fields, ...item }) => ({
            ...item,
            ...address,
            entity: kind.name,
            ...(fields.length > 0 ? { lost: fields } : {}),
          })),
        }),
      },
    ),
    bind(
      {
        ...common,
        kind: 'write',
        name: `operations-restore-${fileName}`,
        summary: `Put entities of ${entity.name} and their children back to what they were at an instant; requires a role that may write every row too`,
        input: () => Choice,
        output: () =>
          listOf(z.object({ outcome: z.enum(['restored', 'changed', 'failed']), problem: Problem.optional(), lost })),
        run: ({ engine }, { at, items }: z.infer<typeof Choice>) => restoreInPlace(engine, selectionOf(at), items),
      },
      {
        method: 'POST',
        path: `operations/restore/${name}`,
        success: { status: 200, description: 'What became of each, in their order; what has changed since stays' },
        async read(context) {
          const given = parse(Choice, await context.json());
          requirePast(context.engine.now(), given.at);
          const other = given.items.find((item) => !kinds.some((kind) => isPlaceOf(kind, item)));
          if (!other) return given;
          throw new RowkeyError(
            'invalid-input',
            `"${other.entity}" in the table "${other.table}" is none of ${name}.`,
            {
              field: 'items',
              accepted: 'items of a comparison',
            },
          );
        },
        present: (items, { root, log }) => ({
          status: 200,
          body: {
            items: items.map(({ lost: fields, error }) => ({
              outcome: !error ? 'restored' : hasCode(error, 'etag-mismatch', 'duplicate-key') ? 'changed' : 'failed',
              ...(error ? { problem: reportProblem(error, root, log) } : {}),
              ...(fields.length > 0 ? { lost: fields } : {}),
            })),
          },
        }),
      },
    ),
  ];
}

const isPlaceOf = (kind: Entity, { entity, table }: z.infer<typeof Chosen>) =>
  kind.name === entity && isTableOf(kind, table);

function requirePast(now: number, at: string): void {
  if (Date.parse(at) <= now) return;
  throw new RowkeyError('invalid-input', '"at" is in the future.', { field: 'at', accepted: 'an instant up to now' });
}

function presentOne({ entity, key, outcome, lost }: Undeleted, { root, log }: RequestContext) {
  const common = { entity: entity.name, ...(key ? { key } : {}), ...(lost.length > 0 ? { lost } : {}) };
  if (!(outcome instanceof RowkeyError)) return { ...common, outcome: 'restored' };
  const isThere = ['duplicate-key', 'etag-mismatch'].includes(outcome.code);
  return { ...common, outcome: isThere ? 'exists' : 'failed', problem: reportProblem(outcome, root, log) };
}
