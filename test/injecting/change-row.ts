import type { WalkWorld } from '../../local/walk/walk-world.ts';
import { definePlaces, type Entity } from '../kit/define.ts';
import { type RawRow, type StoredRow, textIn } from './stored-rows.ts';

/** What is done to a row. The others are done to some rows only. */
export const MUTATIONS = ['deleted', 'altered', 'of another type', 'copied to another key'] as const;
export type Mutation = (typeof MUTATIONS)[number];

/** Properties that say what the row is, or of which write it is. */
const NAMES =
  'partitionKey rowKey EntityType EntityVersion SourcePartition WriteId Incarnation Confirmed DenormalizedTo TouchedBy Writers kind'.split(
    ' ',
  );

/** Changes a row behind the app's back. False if the row has nothing of the kind to change. */
export async function changeRow(
  { engine }: WalkWorld,
  entity: Entity,
  { table, raw }: StoredRow,
  mutation: Mutation,
): Promise<boolean> {
  const client = engine.storage.table(table);
  const { partitionKey, rowKey } = raw;
  if (mutation === 'deleted') {
    await client.deleteEntity(partitionKey, rowKey);
    return true;
  }
  if (mutation === 'copied to another key') {
    // A contribution of nobody, beside that of its entity.
    const source = raw.Values === undefined ? {} : { SourceRow: `${textIn(raw.SourceRow)}9` };
    // A row key that no index has is read by no request, and may be that of an index of the release before.
    const isConstant = definePlaces.projectionsOf(entity).some(({ at }) => at.row.template === rowKey);
    const keys = isConstant ? { partitionKey: withOtherEnd(partitionKey) } : { rowKey: withOtherEnd(rowKey) };
    await client.createEntity({ ...raw, ...source, ...keys });
    return true;
  }
  const isKey = (one: string) => entity.keyFields.includes(one);
  const own = ownProperties(raw);
  const name =
    own.find((one) => !isKey(one) && !entity.decidedFields.includes(one)) ??
    own.find((one) => raw.SourceRow !== undefined && isKey(one));
  if (name === undefined) return false;
  const value = mutation === 'altered' ? alterProperty(name, raw[name]) : isText(raw[name]) ? 5 : 'lots';
  await client.updateEntity({ partitionKey, rowKey, [name]: value }, 'Merge');
  return true;
}

/** The properties that have the values of the row. */
export function ownProperties(raw: RawRow): string[] {
  return Object.keys(raw).filter((name) => !NAMES.includes(name) && !/^(SourceRow|FurtherRows|Row\d+)$/.test(name));
}

function withOtherEnd(key: string): string {
  return `${key.slice(0, -1)}${key.endsWith('9') ? '8' : '9'}`;
}

/** A Double is a text with its type. */
function isText(property: unknown): boolean {
  if (typeof property === 'object' && property !== null && 'type' in property) return property.type === 'String';
  return typeof property === 'string';
}

/** Another value of the same type. */
export function alterProperty(name: string, property: unknown): unknown {
  const value = textIn(property);
  if (name === 'Amounts')
    return JSON.stringify({ ...JSON.parse(String(value)), count: JSON.parse(String(value)).count + 1 });
  if (name === 'Members') return '';
  if (name === 'Values') return '{"amount":77.5}';
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\d/.test(value)) return value.replace(/^\d{4}/, '2001');
  if (typeof value === 'string' && value.startsWith('[')) return '["other"]';
  if (typeof property === 'object' && property !== null && 'type' in property && property.type !== 'String')
    return { ...property, value: String(Number(value) + 1) };
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'boolean') return !value;
  // No longer than before: a value that is too long cannot be asked for.
  const text = String(value);
  return `${text.slice(0, -1)}${text.endsWith('x') ? 'y' : 'x'}`;
}
