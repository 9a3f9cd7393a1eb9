import { isDeepStrictEqual } from 'node:util';
import type { WalkWorld } from '../../local/walk/walk-world.ts';
import { baseValues } from '../kit/base.ts';
import { defineCodec, type Entity } from '../kit/define.ts';
import { engineRead } from '../kit/engine.ts';
import { alterProperty, changeRow, MUTATIONS, type Mutation, ownProperties } from './change-row.ts';
import { kindOf } from './row-kind.ts';
import { type StoredRow, textIn } from './stored-rows.ts';

/** Injections behind the app's back: each changes one stored row, and the consistency check must find and repair it. */

export interface Injection {
  readonly title: string;
  /** What is changed, in the words of the documentation. */
  readonly what: string;
  readonly mutation: Mutation;
  readonly entity: Entity;
  /** False if the row has nothing of the kind to change; a function undoes what `restore` does not. */
  apply(world: WalkWorld): Promise<boolean | (() => Promise<unknown>)>;
}

/** An injection of each kind into a row of each kind. */
export function injectionsInto(entities: readonly Entity[], rows: readonly StoredRow[]): Injection[] {
  const first = new Map<string, Injection[]>();
  // Those with the most values have rows of every kind beside them.
  const richest = rows.toSorted((one, other) => JSON.stringify(other.raw).length - JSON.stringify(one.raw).length);
  for (const row of richest) {
    const found = kindOf(entities, row);
    const id = found && `${found.kind} of ${found.entity.name}, ${found.of}`;
    if (!found || id === undefined || first.has(id)) continue;
    const { kind: what, entity } = found;
    const injections = MUTATIONS.map(
      (mutation): Injection => ({
        title: `${id}: ${mutation}`,
        what,
        mutation,
        entity,
        apply: (world) => changeRow(world, entity, row, mutation),
      }),
    );
    first.set(id, [...injections, ...specialInjections(entities, rows, { row, found, id })]);
  }
  return [...first.values()].flat();
}

interface Into {
  readonly row: StoredRow;
  readonly found: NonNullable<ReturnType<typeof kindOf>>;
  readonly id: string;
}

function specialInjections(
  entities: readonly Entity[],
  rows: readonly StoredRow[],
  { row, found, id }: Into,
): Injection[] {
  const { kind, entity } = found;
  const merge = (what: string, mutation: Mutation, properties: Record<string, unknown>): Injection => ({
    title: `${id}: ${what} ${mutation}`,
    what,
    mutation,
    entity,
    async apply({ engine }) {
      const { partitionKey, rowKey } = row.raw;
      await engine.storage.table(row.table).updateEntity({ partitionKey, rowKey, ...properties }, 'Merge');
      return true;
    },
  });
  const all: Injection[] = [];
  const isEntity = /entity|child|series/.test(kind);
  // A list and a total have types of the engine. What clients write has the type of its key.
  if (isEntity ? !entity.isWrittenByClients : /copy|unique|contribution/.test(kind))
    all.push(
      merge(`type of ${isEntity ? 'an entity' : 'an index entry'}`, 'altered', { EntityType: `${entity.name}x` }),
    );
  const reference = Object.keys(row.raw).find((name) => name.startsWith('Blob_'));
  if (reference !== undefined)
    all.push(
      merge('reference to a long text', 'altered', { [reference]: `${textIn(row.raw[reference])}x` }),
      merge('reference to a long text', 'of another type', { [reference]: 5 }),
    );
  if (kind === 'unique value') {
    const other = rows.find(
      (one) =>
        one.table === entity.table &&
        kindOf(entities, one)?.entity === entity &&
        one.raw.SourceRow === undefined &&
        one.raw.rowKey !== textIn(row.raw.SourceRow),
    );
    if (other)
      all.push(
        merge('owner of a unique value', 'altered', {
          SourcePartition: other.raw.partitionKey,
          SourceRow: other.raw.rowKey,
        }),
      );
  }
  if (kind === 'contribution')
    all.push(merge('owner of a contribution', 'altered', { SourceRow: `${textIn(row.raw.SourceRow)}9` }));
  if (!kind.startsWith('entity') && kind !== 'child') return all;
  if (entity.union) all.push(merge('kind of an entity', 'altered', { kind: 'nobody' }));
  const [encrypted] = entity.encrypted.filter((field) => row.raw[field] !== undefined);
  if (encrypted !== undefined) all.push(merge('encrypted value', 'altered', { [encrypted]: 'v1.garbage' }));
  const [referring] = Object.values(entity.references).filter(
    ({ field }) => typeof row.raw[field] === 'string' && !entity.keyFields.includes(field),
  );
  if (referring) all.push(merge('reference to another entity', 'altered', { [referring.field]: '999999' }));
  const copied = Object.values(entity.denormalized)
    .flatMap(({ copies }) => Object.keys(copies))
    .find((field) => row.raw[field] !== undefined);
  if (copied !== undefined) all.push(merge('field copied from another entity', 'altered', { [copied]: 'other' }));
  const derived = derivedProperty(entity, row);
  if (derived !== undefined)
    all.push(
      merge('value that a derived field follows from', 'altered', {
        [derived]: alterProperty(derived, row.raw[derived]),
      }),
    );
  const count = Object.keys(entity.counts).find((field) => row.raw[field] !== undefined);
  if (count !== undefined)
    all.push(merge('count', 'altered', { [count]: 77 }), merge('count', 'of another type', { [count]: 'lots' }));
  for (const name of Object.keys(row.raw)) {
    const field = name.replace(/^Blob_/, '');
    const container =
      entity.attachments[field]?.container ?? (name === `Blob_${field}` ? engineRead.LARGE_CONTAINER : undefined);
    const what = container === engineRead.LARGE_CONTAINER ? 'blob of a long text' : 'file';
    if (container !== undefined)
      all.push({
        title: `${id}: ${what} deleted`,
        what,
        mutation: 'deleted',
        entity,
        apply: (world) => deleteBlob(world, container, row.raw[name]),
      });
  }
  return all;
}

/** A property whose alteration changes what a derived field should be. */
function derivedProperty(entity: Entity, { raw }: StoredRow): string | undefined {
  const derive = (properties: Record<string, unknown>) =>
    defineCodec.withDerived(entity, defineCodec.toValues(entity, baseValues.mapValues(properties, textIn)));
  const derivedOf = (properties: Record<string, unknown>) =>
    baseValues.pick(derive(properties), Object.keys(entity.derived));
  return ownProperties(raw).find(
    (name) =>
      !entity.decidedFields.includes(name) &&
      !isDeepStrictEqual(derivedOf(raw), derivedOf({ ...raw, [name]: alterProperty(name, raw[name]) })),
  );
}

async function deleteBlob(
  { engine }: WalkWorld,
  container: string,
  description: unknown,
): Promise<() => Promise<unknown>> {
  const { blob } = JSON.parse(String(textIn(description)));
  const client = engine.storage.container(container).getBlockBlobClient(blob);
  const bytes = await client.downloadToBuffer();
  const { metadata = {}, contentType } = await client.getProperties();
  await client.delete();
  const blobHTTPHeaders = contentType === undefined ? {} : { blobContentType: contentType };
  return () => client.uploadData(bytes, { metadata, blobHTTPHeaders });
}
