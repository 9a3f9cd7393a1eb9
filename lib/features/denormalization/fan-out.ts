import pMap from 'p-map';
import { RowkeyError } from '../../base/errors.ts';
import { isSame } from '../../base/is-same.ts';
import { hasWrongValue, omit, pick, type Values } from '../../base/values.ts';
import { toSnapshot } from '../../define/codec/entity-codec.ts';
import { type Change, liveValues, type PlanDraft, relatedKey } from '../../define/declaration/change.ts';
import type { Engine } from '../../define/declaration/engine.ts';
import type { Denormalized, Entity, FanOutStep, Feature } from '../../define/declaration/entity.ts';
import { addressIfAny, addressOf, isCopy } from '../../define/places/index-entries.ts';
import {
  isByKey,
  keyIn,
  lookupBy,
  otherKeyFields,
  type Relation,
  referrersRange,
  referringFields,
} from '../../define/places/relation.ts';
import { isOptional } from '../../define/schema/field-schema.ts';
import { declarationOf } from '../../engine/read/entity-rows.ts';
import { fieldsOf } from '../../engine/reconcile/intent.ts';
import type { EntityWrite } from '../../engine/write/checks.ts';
import { writeOne, writePartitions } from '../../engine/write/entity-batch.ts';
import { type Address, type Row, readRange, readRow } from '../../storage/rows.ts';
import { count } from '../../telemetry/metrics.ts';
import { inPattern } from '../../telemetry/span.ts';
import { copiesOf, copyErrors } from './denormalization.ts';

/**
 * Denormalization pattern with fan-out: any number of entities, in any partition, contain copies of fields of a source, such as
 * the name of a supplier in each of its products.
 *
 *   write of the source     intent, hidden -> transaction -> message -> queue: a page of receiving entities
 *                           -> the source -> the entities whose copies differ, in transactions -> the next page
 *   write of a receiver     the source -> transaction, both within the time limit of the write
 *
 * A receiver that was written from the former source may commit after the queue has read its page. So the queue reads all
 * receivers again, in a last pass that begins when no such write can commit any more: an intent is hidden for longer than that.
 * Each transaction of the queue reads the source too, so late, repeated and reordered messages never write former values.
 *
 * A receiver whose index entry a queue function has written, perhaps after the last pass, is compared with its source then.
 */
export const fanOut: Feature = {
  name: 'denormalization',
  isUsed: ({ denormalized, dependents }) => [...Object.values(denormalized), ...dependents].some((link) => link.fanOut),
  *validate(entity) {
    for (const link of linksOf(entity)) yield* linkErrors(entity, link);
  },
  keptFields: (entity) => linksOf(entity).flatMap(({ copies }) => Object.keys(copies)),
  write: {
    *related(entity, change) {
      for (const link of linksOf(entity)) {
        const address = isCopiedBy(link, change) ? sourceOf(link, change.after) : undefined;
        if (address) yield address;
      }
    },
    complete(entity, change, draft) {
      let { after } = change;
      for (const link of linksOf(entity)) {
        if (!isCopiedBy(link, change)) continue;
        const address = sourceOf(link, after);
        const row = address && findRow(draft, change.address, address);
        after = withCopies(link, after, row && valuesOf(link.source, row));
      }
      return after;
    },
  },
  fanOut: {
    isNeeded: (entity, { before, after }) =>
      receiversOf(entity).some((link) => !isSame(copiesOf(link, liveValues(before)), copiesOf(link, after))),
    async run(engine, entity, step) {
      return inPattern('denormalization', () => updatePages(engine, entity, step))();
    },
    async afterSettled(engine, entity, address) {
      const links = linksOf(entity).filter((link) => lookupOf(link)?.isRemote);
      const receiver = links.length > 0 ? await readReceiver(engine, entity, address) : undefined;
      if (receiver && (await isStale(engine, receiver, links))) await refresh(engine, entity, receiver);
    },
    // The copies are built and checked like an index.
    shapes: (entity) =>
      Object.fromEntries(
        linksOf(entity).map((link) => {
          const row = `{${link.field}} ${link.source.name}`;
          return [buildName(link), { kind: 'fan-out', row, copies: Object.keys(link.copies).sort() }];
        }),
      ),
  },
  check: {
    async entity(engine, entity, { address, snapshot, only }) {
      const checked = linksOf(entity).filter((link) => only === undefined || only === buildName(link));
      const found = await pMap(checked, async (link) => {
        const source = await readSource(engine, link, snapshot.values);
        const corrects = (values: Values) => withCopies(link, values, source);
        const suspicion = {
          kind: 'stale-copy',
          of: link.field,
          ...address,
          sum: address,
          corrects,
          repair: () => refresh(engine, entity, { address, values: snapshot.values }),
        } as const;
        return isSame(corrects(snapshot.values), snapshot.values) ? [] : [suspicion];
      });
      return found.flat();
    },
  },
};

/** A page is at most one transaction for each partition. */
const PAGE_ROWS = 100;
/** Bounds the time of one message, to about ten seconds. */
const PAGES_A_MESSAGE = 10;
const READS_CONCURRENCY = 16;

const linksOf = ({ denormalized }: Entity) => Object.values(denormalized).filter((link) => link.fanOut);
const receiversOf = ({ dependents }: Entity) => dependents.filter((link) => link.fanOut);
const lookupOf = (link: Denormalized) => lookupBy(link.target(), referringFields(relationOf(link)));

function relationOf({ source, target, field, by }: Denormalized): Relation {
  return { from: target, field, to: source, by };
}

/** Unique within the model. Messages name it. */
function nameOf({ target, field }: Denormalized): string {
  return `${target().name}.${field}`;
}

/** The name by which `reindex` builds the copies. No index can have it. */
function buildName({ field }: Denormalized): string {
  return `copies-${field}`;
}

function* linkErrors(entity: Entity, link: Denormalized): Generator<string> {
  const { source, copies } = link;
  const relation = relationOf(link);
  const what = `the denormalized fields copy from "${source.name}" (fanOut)`;
  yield* copyErrors(link);
  for (const one of [entity, source]) {
    const reason = one.period ? 'a period' : one.series ? 'counts alone' : one.childOf ? 'a parent' : undefined;
    if (reason) yield `${what}, and "${one.name}" has ${reason}. Use entities with rows of their own in one table.`;
    if (one.isWrittenByClients)
      yield `${what}, and clients write "${one.name}" straight to storage (access.own), where nothing updates copies. Grant only r.`;
  }
  const fields = [...otherKeyFields(relation).map((field) => [field, field]), [link.field, link.by]];
  for (const [field = '', keyField = ''] of fields)
    if (!source.keyFields.includes(keyField) || entity.columns[field] !== source.columns[keyField])
      yield `${what}, whose key field "${keyField}" this entity does not have as "${field}" of the same type. Add the field.`;
  if (isByKey(relation) && !lookupOf(link))
    yield `${what}, and cannot find the entities of one source by one query. Make ${referringFields(relation).join(', ')} the first fields of the key, or of an index of copies without a condition whose other fields are required.`;
  if (entity.keptFields.includes(link.field))
    yield `${what} by "${link.field}", which a pattern sets. Use a field that callers write.`;
  for (const field of Object.keys(copies))
    if (Object.hasOwn(entity.columns, field) && !isOptional(entity.schema, field))
      yield `${what} to "${field}", which is required, and there may be no source. Make it optional.`;
}

/** True if a change copies from the source anew: the reference is new, or the entity arrives from another partition. */
function isCopiedBy(link: Denormalized, { before, after, arrival, refreshesCopies }: Change): boolean {
  if (refreshesCopies || arrival) return true;
  const relation = relationOf(link);
  return !isSame(keyIn(relation, liveValues(before)), keyIn(relation, after));
}

function sourceOf(link: Denormalized, values: Values | undefined): Address | undefined {
  const key = keyIn(relationOf(link), values);
  return key && addressIfAny(link.source, key);
}

/** The row at `address`, which may be beside the entity at `own`. */
function findRow({ siblings, related }: PlanDraft, own: Address, address: Address): Row | undefined {
  const isBeside = address.table === own.table && address.partition === own.partition;
  return related.get(relatedKey(address)) ?? (isBeside ? siblings.get(address.row) : undefined);
}

function withCopies(link: Denormalized, receiver: Values, source: Values | undefined): Values {
  // The copies may be the last right values.
  if (source && hasWrongValue(source)) return receiver;
  return { ...omit(receiver, Object.keys(link.copies)), ...copiesOf(link, source) };
}

async function readSource(
  { storage }: Engine,
  link: Denormalized,
  receiver: Values | undefined,
): Promise<Values | undefined> {
  const address = sourceOf(link, receiver);
  const row = address && (await readRow(storage, address));
  return row && valuesOf(link.source, row);
}

function valuesOf(entity: Entity, row: Row): Values | undefined {
  return liveValues(toSnapshot(entity, isEntity(entity, row) ? row : undefined));
}

function isEntity({ name }: Entity, row: Row): boolean {
  return row.properties.EntityType === name && !isCopy(row);
}

/** An entity with copies. Without its row, it is read before it is written. */
interface Receiver {
  readonly address: Address;
  readonly values: Values;
  readonly found?: Row;
}

async function readReceiver({ storage }: Engine, entity: Entity, address: Address): Promise<Receiver | undefined> {
  const row = await readRow(storage, address);
  return row && toReceiver(entity, row);
}

function toReceiver(entity: Entity, found: Row): Receiver | undefined {
  const values = valuesOf(entity, found);
  if (!values) return undefined;
  const address = { table: found.table, partition: found.partition, row: found.row };
  // It may be at its former key, or between the two. The read of the write moves it.
  return entity.formerKey ? { address: addressOf(entity, values), values } : { address, values, found };
}

async function isStale(engine: Engine, { values }: Receiver, links: readonly Denormalized[]): Promise<boolean> {
  for (const link of links)
    if (!isSame(withCopies(link, values, await readSource(engine, link, values)), values)) return true;
  return false;
}

/** The write that copies the current fields to an entity. */
function prepareRefresh(entity: Entity, { address, values, found }: Receiver): EntityWrite {
  return {
    entity,
    address,
    key: pick(values, entity.keyFields),
    expects: 'one',
    conditions: {},
    read: {},
    found,
    isUpkeep: true,
    refreshesCopies: true,
    next: async (current) => current?.values,
  };
}

/** Copies the current fields to one entity. Returns false if other writers keep changing the entity. */
async function refresh(engine: Engine, entity: Entity, { address, values }: Receiver): Promise<boolean> {
  try {
    await writeOne(engine, prepareRefresh(entity, { address, values }));
    return true;
  } catch (error) {
    const code = error instanceof RowkeyError ? error.code : undefined;
    if (code === 'busy') return false;
    if (code !== 'not-found') throw error;
    return true;
  }
}

/** Updates some pages of receivers, and returns where to continue. */
async function updatePages(
  engine: Engine,
  entity: Entity,
  { sources, position, hold, fail }: FanOutStep,
): Promise<FanOutStep['position']> {
  const links = receiversOf(entity);
  const work = sources.flatMap((address, source) => links.map((link) => ({ address, source, link })));
  const first = work.findIndex(({ source, link }) => source === position?.source && nameOf(link) === position.relation);
  let after = first < 0 ? undefined : position?.after;
  let pages = 0;
  for (const { address, source, link } of work.slice(Math.max(0, first)))
    for (;;) {
      if (pages === PAGES_A_MESSAGE) return { source, relation: nameOf(link), after };
      pages += 1;
      await hold.keep();
      after = await updatePage(engine, link, { source: address, after, fail });
      if (after === undefined) break;
    }
  return undefined;
}

/** Updates a page of receivers. Returns its last row, or undefined if no page follows. */
async function updatePage(
  engine: Engine,
  link: Denormalized,
  { source, after, fail }: { readonly source: Address; readonly after: string | undefined } & Pick<FanOutStep, 'fail'>,
): Promise<string | undefined> {
  const relation = relationOf(link);
  const entity = await declarationOf(engine, link.target());
  const sourceKey = fieldsOf(link.source, [
    [link.source.partition, source.partition],
    [link.source.row, source.row],
  ]);
  const key = sourceKey && pick(sourceKey, link.source.keyFields);
  const range = key && referrersRange(relation, key);
  if (!range) return undefined;
  const page = await readRange(engine.storage, { ...range, type: entity.name, after, limit: PAGE_ROWS });
  const rows = page.rows.filter((row) => isCopy(row) === (range.index !== undefined));
  const readOne = async (row: Row) => {
    if (range.index === undefined) return toReceiver(entity, row);
    const { SourcePartition, SourceRow } = row.properties;
    return readReceiver(engine, entity, {
      table: entity.table,
      partition: String(SourcePartition),
      row: String(SourceRow),
    });
  };
  const last = page.more ? page.rows.at(-1)?.row : undefined;
  if (rows.length === 0) return last;
  const receivers = await pMap(rows, readOne, { concurrency: READS_CONCURRENCY });
  // After the receivers: a receiver that another message updates from a later source meanwhile has another ETag.
  const found = await readRow(engine.storage, source);
  const copies = found && valuesOf(link.source, found);
  const stale = receivers
    .filter((receiver) => receiver !== undefined)
    .filter(({ values }) => isSame(keyIn(relation, values), key))
    .filter(({ values }) => !isSame(withCopies(link, values, copies), values));
  const writes = stale.map((receiver) => prepareRefresh(entity, receiver));
  const outcomes = [...(await writePartitions(engine, writes)).values()];
  const errors = outcomes.filter((outcome) => outcome instanceof RowkeyError);
  const updated = outcomes.length - errors.length;
  if (updated > 0) count.fanOut({ entity: entity.name }, updated);
  for (const { code, message } of errors) if (!TEMPORARY.has(code) && code !== 'not-found') fail(message);
  // The message is then tried again.
  const waiting = errors.find(({ code }) => TEMPORARY.has(code));
  if (waiting) throw waiting;
  return last;
}

const TEMPORARY = new Set<string>(['busy', 'not-provisioned', 'identity-unavailable']);
