import type { PipelineRequest, PipelineResponse } from '@azure/core-rest-pipeline';
import { operationsBackup } from '../kit/operations.ts';
import { type Storage, storageJournal } from '../kit/storage.ts';
import type { Chance } from './world/chance.ts';
import type { VirtualProcess } from './world/virtual-world.ts';

/**
 * What a backup has to have: the history of each row, from the requests that storage executed, replayed up to a moment. What movers write is
 * left out: they change no row.
 *
 * A transaction without a line in the journal is one whose process died before it had appended, or never learnt that it was executed. It may be
 * missing in cuts until the next snapshot begins. No transaction of a request that succeeded is one.
 */

type Properties = Readonly<Record<string, unknown>>;
type Kind = 'put' | 'merge' | 'upsert-merge' | 'delete' | 'drop';

/** A transaction that storage executed. */
export interface Executed {
  readonly process: VirtualProcess;
  readonly operation: Chance;
  readonly what: string;
  /** By the clock of the account: with seven digits, the greatest time of its rows, or that of the request. */
  readonly time: string;
  /** The least time of its rows. */
  readonly firstTime: string;
  /** True once the process has the reply. */
  isLearnt: boolean;
  /** Set if somebody relies on it: a caller who got a response, or the end of a message. */
  reliedOnBy?: string;
  /** Set if somebody relies on the entities that it wrote, and that were found. */
  foundBy?: string;
  /** The intents that the operation had sent before. */
  readonly intents: readonly string[];
  readonly changed: readonly RowHistory[];
}

interface Version {
  readonly executed: Executed;
  readonly kind: Kind;
  readonly properties: Properties;
  /** That of the row; of a delete that of its transaction. */
  readonly time: string;
}

interface RowHistory {
  readonly table: string;
  readonly partition: string;
  readonly row: string;
  readonly versions: Version[];
}

/** A line of the journal about a row. */
interface Noted {
  readonly time: string;
  readonly lineTime: string;
  readonly isDelete: boolean;
}

export interface Cuts {
  readonly problems: readonly string[];
  readonly cuts: number;
  /** Changes of rows without a line, of those whose tables a backup has. */
  readonly withoutLine: number;
  /** True if an operation has made a tombstone of the row: else a caller has deleted what was there. */
  readonly hasMoved: (id: string, operation: unknown) => boolean;
  /** The operation that moved this incarnation away from the row. */
  readonly movedBy: (id: string, incarnation: unknown) => unknown;
  /**
   * The states that each row may have in the cut at a moment, or when it is restored, by its table, partition and key. Somebody who found an entity may
   * have added it without the rest of its transaction, which a restore builds.
   */
  readonly statesAt: (
    moment: string,
    manifest: { readonly begunAt: string },
    isRestored?: boolean,
  ) => ReadonlyMap<string, ReadonlySet<string>>;
}

const ENTITIES: Readonly<Record<string, string>> = { quot: '"', apos: "'", lt: '<', gt: '>', amp: '&' };
/** A delete counts from the second of its response on. */
const COUNTED_EARLY_MS = 1_000;
/** A drop counts from its first request on. */
const DROPPED_EARLY_MS = 30_000;
/** A snapshot begins so long before its first request, but for the time by which the clocks of accounts differ. */
const BEGUN_BEFORE_MS = 60_000 - 10_000;
const FENCE = /^~(own|open)_!m/;
export const ABSENT = 'absent';

/** `onDropped` is called for each row whose table is dropped. */
export function createBackupOracle(
  hasTable: (table: string, partition?: string) => boolean,
  onDropped: () => void = () => undefined,
) {
  const rows = new Map<string, RowHistory>();
  const all: Executed[] = [];
  const intentsOf = new WeakMap<Chance, string[]>();
  /** The attempts of the request of each operation, and of each request. */
  const attemptsOf = new WeakMap<Chance, Set<Chance>>();
  const attempts = new Map<string, Set<Chance>>();

  const rowOf = (table: string, partition: string, row: string) => {
    const id = JSON.stringify([table, partition, row]);
    const found = rows.get(id) ?? { table, partition, row, versions: [] };
    rows.set(id, found);
    return found;
  };

  return {
    /** Adds a request that storage has executed. Returns what it changed. */
    noteExecuted(
      by: { readonly process: VirtualProcess; readonly operation: Chance; readonly storageNow: number },
      request: PipelineRequest,
      response: PipelineResponse,
    ): Executed | undefined {
      const { process, operation, storageNow } = by;
      const now = storageJournal.toTime(storageNow) ?? '';
      const dropped = request.method === 'DELETE' && /\/Tables\('(\w+)'\)/.exec(request.url)?.[1];
      if (dropped && response.status < 300 && hasTable(dropped)) {
        const executed = {
          process,
          operation,
          what: `the drop of ${dropped}`,
          time: now,
          firstTime: now,
          isLearnt: false,
          intents: [],
          changed: [],
        };
        for (const { table, versions } of rows.values())
          if (table === dropped) {
            versions.push({ executed, kind: 'drop', properties: {}, time: now });
            onDropped();
          }
        return executed;
      }
      const changes = changesOf(request, response).filter(
        ({ table, partition, row }) => hasTable(table, partition) && !FENCE.test(row),
      );
      const [first] = changes;
      if (!first) return undefined;
      const time =
        changes.reduce((last, change) => (change.time && change.time > last ? change.time : last), '') || now;
      const firstTime = changes.reduce(
        (least, change) => (change.time && change.time < least ? change.time : least),
        time,
      );
      const what = `${first.table} ${JSON.stringify(first.partition)}: ${changes.map(({ kind, row }) => `${kind} ${JSON.stringify(row)}`).join(', ')}`;
      const intents = intentsOf.get(operation) ?? [];
      const changed = changes.map(({ table, partition, row }) => rowOf(table, partition, row));
      const executed = { process, operation, what, time, firstTime, isLearnt: false, intents: [...intents], changed };
      all.push(executed);
      for (const { table, partition, row, kind, properties, time: own } of changes)
        rowOf(table, partition, row).versions.push({ executed, kind, properties, time: own ?? time });
      return executed;
    },

    /** Notes a message that an operation sends: an intent names rows that it will write. */
    noteMessage(operation: Chance, body: string): void {
      const [, escaped = ''] = /<MessageText>([^<]*)</.exec(body) ?? [];
      const text = escaped.replace(/&(quot|apos|lt|gt|amp);/g, (_, name: string) => ENTITIES[name] ?? '');
      const sent = intentsOf.get(operation) ?? [];
      intentsOf.set(operation, [...sent, text.startsWith('{') ? text : Buffer.from(text, 'base64').toString()]);
    },

    /** Notes an attempt of a request that its caller may repeat. */
    begin(operation: Chance, request: string): void {
      const some = attempts.get(request) ?? new Set();
      attempts.set(request, some.add(operation));
      attemptsOf.set(operation, some);
    },

    /** Notes that somebody relies on what an operation has done so far. */
    rely(operation: Chance, by: string): void {
      for (const executed of all) if (executed.operation === operation && executed.isLearnt) executed.reliedOnBy ??= by;
    },

    /** Notes that a request succeeded: also what it found of an earlier attempt, or without a reply, in tables whose rows it finds. */
    relyOnFound(operation: Chance, by: string, finds: (table: string) => boolean = () => true): void {
      const isStored = (executed: Executed) =>
        executed.changed.every(
          ({ table, versions }) =>
            finds(table) &&
            versions.at(-1)?.executed === executed &&
            // What writes the row finds nothing.
            versions.every(({ executed: other }) => other === executed || other.operation !== operation),
        );
      for (const executed of all)
        if (attemptsOf.get(operation)?.has(executed.operation) && isStored(executed)) executed.foundBy ??= by;
    },

    /** When rows changed: those of a transaction have times of their own. */
    times: () => [...rows.values()].flatMap(({ versions }) => versions.map(({ time }) => time)),

    /** Compares the backup with the histories at each of the moments. */
    async compare(
      source: { readonly backup: Storage; readonly storage: Storage },
      moments: readonly string[],
      until: string,
    ): Promise<Cuts> {
      const problems: string[] = [];
      const noted = new Map<string, Noted[]>();
      const drops = new Map<string, string[]>();
      for await (const line of operationsBackup.readJournal(source, { from: BEGIN, to: until })) {
        if ('dropped' in line) {
          drops.set(line.table, [...(drops.get(line.table) ?? []), line.time]);
          continue;
        }
        for (const { row, time, ...what } of line.rows) {
          const id = JSON.stringify([line.table, line.partition, row]);
          const list = noted.get(id) ?? [];
          list.push({ time, lineTime: line.time, isDelete: 'deleted' in what });
          noted.set(id, list);
        }
      }
      const missing = new Set<Executed>();
      const named = (version: Version, row: string) =>
        version.executed.intents.some((text) => text.includes(`"row":${JSON.stringify(row)}`));
      /** From when each version counts: undefined without a line. */
      const since = new Map<Version, string | undefined>();
      /** The greatest time of the rows of a transaction that have a line, and that its intents name: who finds these adds them in one line. */
      const together = new Map<Executed, string>();
      const foundTogether = new Map<Version, string>();
      /** From when a row counts as absent for whoever found it so, which may be in the second before its delete. */
      const gone = new Map<Version, string>();
      for (const [id, { versions, table, row }] of rows) {
        const last = versions.at(-1);
        for (const [index, version] of versions.entries()) {
          const counts = countsFrom(version, {
            before: versions.slice(0, index).findLast(({ kind }) => kind !== 'delete' && kind !== 'drop')?.time ?? '',
            after: versions[index + 1]?.time ?? LAST,
            noted: noted.get(id) ?? [],
            drops: drops.get(table) ?? [],
          });
          since.set(version, counts);
          const found = (noted.get(id) ?? []).filter(
            ({ isDelete, lineTime }) =>
              isDelete && early(version.time, COUNTED_EARLY_MS) <= lineTime && lineTime <= version.time,
          );
          if (version.kind === 'delete' && found.length > 0)
            gone.set(version, found.map(({ lineTime }) => lineTime).sort()[0] ?? LAST);
          // A queue function that found the row absent knows only that it was so when it asked.
          const isSeen = (noted.get(id) ?? []).some(({ time, lineTime }) => time === counts && lineTime === counts);
          const { executed } = version;
          const { foundBy, what, time, process } = executed;
          if (counts !== undefined && named(version, row) && version.time > (together.get(executed) ?? ''))
            together.set(executed, version.time);
          if (counts === undefined && foundBy !== undefined && isEntity(version))
            problems.push(
              `The journal has no line of ${id} in ${what}, at ${time} by ${process.name}, which ${foundBy} found.`,
            );
          if (counts === undefined) missing.add(executed);
          else if (version.kind !== 'drop' && !isSeen && early(time, COUNTED_EARLY_MS) > counts)
            problems.push(`The backup counts ${what} from ${counts} on, and it was at ${time}.`);
        }
        // All messages have ended.
        if (last && since.get(last) === undefined && named(last, row))
          problems.push(
            `The journal has no line of ${id}, by ${last.executed.what} at ${last.executed.time}, whose intent has ended.`,
          );
      }
      for (const { versions, row } of rows.values())
        for (const version of versions)
          if (named(version, row)) foundTogether.set(version, together.get(version.executed) ?? '');
      for (const { process, isLearnt, reliedOnBy, what, time } of missing) {
        if (reliedOnBy !== undefined)
          problems.push(
            `The journal has no line of ${what}, at ${time} by ${process.name}, on which relies ${reliedOnBy}.`,
          );
        else if (isLearnt && !process.isDead)
          problems.push(`The journal has no line of ${what}, at ${time} by ${process.name}, which lives.`);
      }
      const statesAt: Cuts['statesAt'] = (at, manifest, isRestored = false) =>
        new Map(
          [...rows].map(([id, { versions }]) => [
            id,
            allowedAt(versions, { at, manifest, isRestored, since, foundTogether, gone }),
          ]),
        );
      for (const at of moments) {
        const { manifest, rows: found } = await operationsBackup.readState(source, at);
        const states = new Map<string, string>();
        for await (const { table, partition, row, properties } of found)
          states.set(JSON.stringify([table, partition, row]), formatProperties(properties));
        for (const [id, allowed] of statesAt(at, manifest)) {
          const state = states.get(id) ?? ABSENT;
          states.delete(id);
          if (allowed.has(state)) continue;
          problems.push(
            `The cut at ${at} from the snapshot ${manifest.id}, ${manifest.begunAt} to ${manifest.finishedAt}, has of ${id} ${state} in place of ${[...allowed].join(' or ')}: ${rows
              .get(id)
              ?.versions.map((version) => `${version.kind} ${version.time}, line ${since.get(version) ?? 'none'}`)
              .join('; ')}.`,
          );
        }
        for (const [id, state] of states) problems.push(`The cut at ${at} has ${id}, which nobody wrote: ${state}.`);
      }
      const hasMoved: Cuts['hasMoved'] = (id, operation) =>
        rows.get(id)?.versions.some(({ properties }) => properties.MovedTo === operation) ?? false;
      const movedBy: Cuts['movedBy'] = (id, incarnation) => {
        let last: unknown;
        for (const { properties } of rows.get(id)?.versions ?? []) {
          if (properties.MovedTo && last === incarnation) return properties.MovedTo;
          last = properties.Incarnation ?? last;
        }
        return undefined;
      };
      return { problems, cuts: moments.length, withoutLine: missing.size, statesAt, hasMoved, movedBy };
    },
  };
}

/** Before and after all moments of a world. */
const BEGIN = '2027-01-15T00:00:00.0000000Z';
const LAST = '~';

const early = (time: string, byMs: number) => storageJournal.toTime(Date.parse(time) - byMs) ?? '';

/** Further rows, and those that follow from entities, are found by others. */
const isEntity = ({ kind, properties }: Version) =>
  kind === 'put' && properties.Incarnation !== undefined && properties.SourceRow === undefined;

/** The moment from which the journal has a version. */
function countsFrom(
  { kind, time, executed }: Version,
  near: {
    /** The time of the row before, and that of what came next. */
    readonly before: string;
    readonly after: string;
    readonly noted: readonly Noted[];
    readonly drops: readonly string[];
  },
): string | undefined {
  if (kind === 'drop') return near.drops.filter((each) => early(executed.time, DROPPED_EARLY_MS) <= each).sort()[0];
  const lines = near.noted.filter((line) =>
    kind === 'delete'
      ? line.isDelete && line.time > near.before && line.time <= near.after
      : // A move gives a row another time, with which it may be found.
        !line.isDelete && (line.time === time || (line.time > time && line.time < near.after)),
  );
  return lines.map(({ lineTime }) => lineTime).sort()[0];
}

/** The states of a row that a cut may have. */
function allowedAt(
  versions: readonly Version[],
  {
    at,
    manifest,
    isRestored,
    since,
    foundTogether,
    gone,
  }: {
    readonly at: string;
    readonly manifest: { readonly begunAt: string };
    readonly isRestored: boolean;
    readonly since: ReadonlyMap<Version, string | undefined>;
    readonly foundTogether: ReadonlyMap<Version, string>;
    readonly gone: ReadonlyMap<Version, string>;
  },
): ReadonlySet<string> {
  const begun = storageJournal.toTime(Date.parse(manifest.begunAt) + BEGUN_BEFORE_MS) ?? '';
  let states = new Map<string, Properties | undefined>([[ABSENT, undefined]]);
  const deletes = (version: Version | undefined) => version?.kind === 'delete' || version?.kind === 'drop';
  for (const [index, version] of versions.entries()) {
    const { time, firstTime } = version.executed;
    const counts = since.get(version);
    const isDelete = deletes(version);
    // A snapshot that finds no row cannot tell what was deleted: it may be what the journal has.
    const isSeen = isDelete ? time <= manifest.begunAt : time <= begun && !deletes(versions[index + 1]);
    // Rows have exact times. Who has found a row, and not others of its transaction, adds it with its own.
    const isFound = isDelete || (foundTogether.get(version) ?? '') <= at;
    const mayCount = (isRestored ? firstTime : time) <= at || (counts !== undefined && counts <= at && isFound);
    if (!mayCount) continue;
    const mustCount = (time <= at && counts !== undefined && counts <= at) || isSeen;
    const next = new Map<string, Properties | undefined>();
    for (const state of states.values()) {
      const changed = apply(state, version);
      next.set(changed ? formatProperties(changed) : ABSENT, changed);
    }
    states = mustCount ? next : new Map([...states, ...next]);
  }
  const isGone = versions.some((version) => (gone.get(version) ?? LAST) <= at && version.executed.time > at);
  return new Set([...states.keys(), ...(isGone ? [ABSENT] : [])]);
}

function apply(state: Properties | undefined, { kind, properties }: Version): Properties | undefined {
  if (kind === 'delete' || kind === 'drop') return undefined;
  if (kind === 'put') return properties;
  return state || kind === 'upsert-merge' ? { ...state, ...properties } : undefined;
}

/** Equal for equal values. A Double may be written in several ways. */
export function formatProperties(properties: Properties): string {
  const entries = Object.entries(properties).map(([name, value]) => {
    const { type, value: text } = Object(value);
    if (type === undefined) return [name, value];
    return [
      name,
      `${type} ${type === 'Double' ? Number(text) : type === 'DateTime' ? new Date(text).toISOString() : text}`,
    ];
  });
  return JSON.stringify(entries.sort(([one], [other]) => ((one as string) < (other as string) ? -1 : 1)));
}

interface Change {
  readonly table: string;
  readonly partition: string;
  readonly row: string;
  readonly kind: Kind;
  readonly properties: Properties;
  readonly time: string | undefined;
}

/** The rows that a request has changed. */
function changesOf(request: PipelineRequest, response: PipelineResponse): Change[] {
  const { method, url, headers, body } = request;
  if (Number(new URL(url).port) % 3 !== 1 || method === 'GET' || response.status >= 300) return [];
  const text = typeof body === 'string' ? body : '';
  if (!url.includes('/$batch')) {
    const isMatch = headers.has('if-match');
    const change = changeOf({ method, url, isMatch, text, etag: response.headers.get('etag') });
    return change ? [change] : [];
  }
  const replies = (response.bodyAsText ?? '').split(/HTTP\/1\.1 /).slice(1);
  if (replies.some((reply) => Number(reply.slice(0, 3)) >= 400)) return [];
  const [, boundary = ''] = /boundary=(changeset_\S+)/.exec(text) ?? [];
  return text
    .split(`--${boundary}`)
    .slice(1, -1)
    .flatMap((part, index) => {
      const [, verb = '', target = '', head = '', content = ''] =
        /\r?\n([A-Z]+) (\S+) HTTP\/1\.1\r?\n([\s\S]*?)\r?\n\r?\n([\s\S]*)$/.exec(part) ?? [];
      const etag = /ETag: (.*?)\r?\n/.exec(replies[index] ?? '')?.[1];
      const change = changeOf({
        method: verb,
        url: target,
        isMatch: /^if-match:/im.test(head),
        text: content.trim(),
        etag,
      });
      return change ? [change] : [];
    });
}

function changeOf(sent: {
  readonly method: string;
  readonly url: string;
  readonly isMatch: boolean;
  readonly text: string;
  readonly etag: string | undefined;
}): Change | undefined {
  const { method, url, isMatch, text, etag } = sent;
  const path = decodeURIComponent(new URL(url).pathname.split('/').slice(2).join('/'));
  const [, table = '', key] = /^(\w+)(?:\(\)|(\(PartitionKey=.*\)))?$/s.exec(path) ?? [];
  if (table === '' || table === 'Tables') return undefined;
  const time = storageJournal.timeOf(etag);
  const given = text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
  const keys = /^\(PartitionKey='((?:[^']|'')*)',RowKey='((?:[^']|'')*)'\)$/s.exec(key ?? '');
  const [, partition = String(given.PartitionKey), row = String(given.RowKey)] = (keys ?? []).map((part) =>
    part.replaceAll("''", "'"),
  );
  const at = { table, partition, row, time };
  if (method === 'DELETE') return { ...at, kind: 'delete', properties: {} };
  const properties = toTyped(given);
  if (method === 'MERGE' || method === 'PATCH') return { ...at, kind: isMatch ? 'merge' : 'upsert-merge', properties };
  return method === 'POST' || method === 'PUT' ? { ...at, kind: 'put', properties } : undefined;
}

function toTyped(given: Readonly<Record<string, unknown>>): Properties {
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => {
      if (['PartitionKey', 'RowKey', 'Timestamp'].includes(name) || name.includes('odata.') || value === null)
        return [];
      const type = String(given[`${name}@odata.type`] ?? '').replace('Edm.', '');
      if (type !== '' && !['String', 'Boolean', 'Int32'].includes(type))
        return [[name, { type, value: String(value) }]];
      const isDouble = typeof value === 'number' && !Number.isInteger(value);
      return [[name, isDouble ? { type: 'Double', value: String(value) } : value]];
    }),
  );
}
