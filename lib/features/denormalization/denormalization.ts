import { callApp } from '../../base/app-mistake.ts';
import { RowkeyError } from '../../base/errors.ts';
import { isSame } from '../../base/is-same.ts';
import { hasWrongValue, omit, type Values } from '../../base/values.ts';
import { toProperties, toSnapshot } from '../../define/codec/entity-codec.ts';
import { withDerived } from '../../define/codec/validation.ts';
import { type Change, liveValues, type PlanDraft, type Siblings } from '../../define/declaration/change.ts';
import type { Denormalized, Entity, Feature } from '../../define/declaration/entity.ts';
import type { Suspicion } from '../../define/declaration/finding.ts';
import { buildKey } from '../../define/keys/key-template.ts';
import { fieldsHiddenFrom, rolesToSee } from '../../define/places/readers.ts';
import { sameFields, unreadableErrors } from '../../define/validate/disclosure.ts';
import { oracleErrors, staleIndexErrors } from '../../define/validate/feature-errors.ts';
import { tryCommit } from '../../engine/write/eventual-transaction.ts';
import { type Action, readRow } from '../../storage/rows.ts';

/**
 * Denormalization pattern: an entity contains copies of fields of another entity of its partition, so that one read returns
 * both. Source and copies change in one entity group transaction; `fan-out.ts` copies to many entities through the queue. The source stores the row key of its copy
 * (`DenormalizedTo`), so entities that are not copied cost no extra read.
 */
export const denormalization: Feature = {
  name: 'denormalization',
  isUsed: ({ denormalized, dependents }) =>
    [...Object.values(denormalized), ...dependents].some((link) => !link.fanOut),
  *validate(entity) {
    const { table, partition, row, columns, indexes } = entity;
    yield* staleIndexErrors(entity, listCopiedFields(entity));
    const local = Object.keys(indexes).find((name) => !indexes[name]?.remote);
    if (local !== undefined && linksOf(entity).length > 0)
      yield `the index "${local}" is in the partition, where a change of the entity that fields are copied from would leave it stale. Give the index a table of its own.`;
    for (const link of linksOf(entity)) {
      const { source, field: referring, by } = link;
      const what = `the denormalized fields copy from "${source.name}"`;
      yield* copyErrors(link);
      // A write of a reference to an entity that does not exist is rejected.
      yield* oracleErrors(what, { writer: entity, seen: source, field: by, isUnique: true });
      if (source.table !== table || source.partition.template !== partition.template)
        yield `${what}, which is in another table or partition. Use one table and one partition key for both.`;
      if (!source.keyFields.includes(by))
        yield `${what} by the reference ${referring} to ${by}. Refer from a field of this entity to a key field of the other.`;
      const missing = source.row.fields.find((field) => field !== by && !Object.hasOwn(columns, field));
      if (missing)
        yield `${what}, whose row key has the field "${missing}", which this entity does not have. Add it to the schema.`;
      // A source stores the row key of one row that copies it.
      const [first] = dependentsOf(source);
      if (row.fields.length > 0)
        yield `${what}, and only one row of a partition may. Use a row key without fields, or fanOut.`;
      else if (first && first !== link)
        yield `${what}, and only one row of a partition may: "${first.target().name}" copies from it already. Remove one of them, or use fanOut.`;
    }
  },
  keptFields: listCopiedFields,
  write: {
    leavesTombstone: true,
    *siblings(entity, { before, after }) {
      for (const link of linksOf(entity))
        for (const values of [liveValues(before), after]) {
          const row = sourceRow(link, values);
          if (row !== undefined) yield row;
        }
      if (before.state === 'live' && before.system.DenormalizedTo) yield before.system.DenormalizedTo;
    },
    complete(entity, { before, after }, { siblings, guard }) {
      let completed = after;
      for (const link of linksOf(entity)) {
        const row = sourceRow(link, completed);
        const source = toSnapshot(link.source, row === undefined ? undefined : siblings.get(row));
        const isKept = row === sourceRow(link, liveValues(before));
        const isSeen = isKept || !guard || guard.canRefer(link.source.name, liveValues(source) ?? {});
        if (row !== undefined && (source.state !== 'live' || !isSeen)) {
          const { field } = link;
          throw new RowkeyError(
            'invalid-input',
            `"${field}" refers to no entity of ${link.source.name} in this partition.`,
            {
              field,
              accepted: `the key of an entity of ${link.source.name} in the same partition`,
            },
          );
        }
        completed = withCopies(link, completed, liveValues(source));
      }
      return completed;
    },
    plan(entity, changes, { siblings, actions, dependents }) {
      const mark = (row: string | undefined, DenormalizedTo: string) => {
        const found = row === undefined ? undefined : siblings.get(row);
        if (found)
          actions.push({
            action: { kind: 'merge', row: found.row, properties: { DenormalizedTo }, etag: found.etag },
            part: { of: 'sibling' },
          });
      };
      for (const change of changes) {
        for (const link of linksOf(entity)) {
          const from = sourceRow(link, liveValues(change.before));
          const to = sourceRow(link, change.after);
          if (from !== to) mark(from, '');
          // Always under the source's ETag: the transaction must fail if the copied fields have changed.
          mark(to, change.address.row);
        }
        for (const { action, dependent } of planDependents(entity, change, siblings)) {
          actions.push({ action, part: { of: 'sibling' } });
          dependents.push(dependent);
        }
      }
    },
  },
  check: {
    async entity(engine, entity, { address, snapshot }) {
      const suspicions: Suspicion[] = [];
      for (const link of linksOf(entity)) {
        const key = sourceRow(link, snapshot.values);
        if (key === undefined) continue;
        const row = await readRow(engine.storage, { ...address, row: key });
        const source = toSnapshot(link.source, row?.properties.EntityType === link.source.name ? row : undefined);
        const isMarked = source.state === 'live' && source.system.DenormalizedTo === address.row;
        const corrects = (values: Values) => withCopies(link, values, liveValues(source));
        const after = corrects(snapshot.values);
        if (isMarked && isSame(after, snapshot.values)) continue;
        const change = { entity, address, before: snapshot, after, isUpkeep: true };
        const repair = async () => (await tryCommit(engine, [change])) !== undefined;
        suspicions.push({ kind: 'stale-copy', of: link.field, ...address, sum: address, corrects, repair });
      }
      return suspicions;
    },
  },
};

const linksOf = ({ denormalized }: Entity) => Object.values(denormalized).filter((link) => !link.fanOut);
const dependentsOf = ({ dependents }: Entity) => dependents.filter((link) => !link.fanOut);

function listCopiedFields(entity: Entity): string[] {
  return linksOf(entity).flatMap((link) => Object.keys(link.copies));
}

/** Plans the change of the copies of a changed source, or their removal if the source is deleted. */
function planDependents(
  entity: Entity,
  { before, after }: Change,
  siblings: Siblings,
): { readonly action: Action; readonly dependent: PlanDraft['dependents'][number] }[] {
  if (before.state !== 'live' || !before.system.DenormalizedTo) return [];
  const found = siblings.get(before.system.DenormalizedTo);
  return dependentsOf(entity).flatMap((link) => {
    const target = toSnapshot(link.target(), found);
    if (!found || target.state !== 'live' || target.system.EntityType !== link.target().name) return [];
    const { row, etag } = found;
    const values = withCopies(link, target.values, after);
    const properties = toProperties(link.target(), values, target.system);
    const dependent = { entity: link.target().name, row, after: values };
    return [{ action: { kind: 'replace', row, properties, etag }, dependent }];
  });
}

/** The target with its copies of `source`, or without the copies and the reference if there is no source. */
function withCopies(link: Denormalized, target: Values, source: Values | undefined): Values {
  // The copies may be the last right values.
  if (source && hasWrongValue(source)) return target;
  const kept = omit(target, Object.keys(link.copies));
  if (!source) return withDerived(link.target(), omit(kept, [link.field]));
  return { ...kept, ...copiesOf(link, source) };
}

/** The row key of the source that `target` refers to. */
function sourceRow(link: Denormalized, target: Values | undefined): string | undefined {
  const id = target?.[link.field];
  return id === undefined ? undefined : buildKey(link.source.row, { ...target, [link.by]: id });
}

/** The copies of a source's fields; none if there is no source. */
export function copiesOf(link: Denormalized, source: Values | undefined): Values {
  if (!source) return {};
  const copies = Object.entries(link.copies).map(
    ([field, copy]) =>
      [
        field,
        callApp(`The copied field "${field}" of ${link.target().name}`, () =>
          copy(omit(source, hiddenFields(link, field))),
        ),
      ] as const,
  );
  return Object.fromEntries(copies.filter(([, value]) => value !== undefined && value !== null));
}

/**
 * The fields of the source from which `field` cannot be made: those that some of its readers may not read, those that are not
 * stored as they are or that not every write reads, and, for a fan-out, those that change with other entities and not with a write of the source.
 */
function hiddenFields({ source, target, fanOut }: Denormalized, field: string): string[] {
  return [
    ...fieldsHiddenFrom(rolesToSee(target(), field), source),
    ...source.apartFields,
    ...Object.keys(source.attachments),
    ...source.referenceFields,
    ...(fanOut ? source.keptFields : []),
  ];
}

/** Yields an error for each copy that shows a source to those who may not read it. */
export function* copyErrors({ source, target, copies, field: referring, by, fanOut }: Denormalized): Generator<string> {
  const entity = target();
  const refer = (other: string) => (other === by ? referring : other);
  // Beside the source, the key of the partition is that of the entity.
  const inPartition = sameFields(entity, source, [source.partition], fanOut ? refer : undefined);
  const same = [...inPartition, ...sameFields(entity, source, [source.row], refer)];
  for (const field of Object.keys(copies))
    yield* unreadableErrors(`"${field}" is copied from "${source.name}"`, { entity, field, from: source, same });
}
