import { StorageRejection } from './storage-request.ts';

/** A property of an entity, with the type that Table storage gives it. */
export interface StoredValue {
  readonly type: EdmType;
  /** For comparisons: numbers, bigints, Booleans, and texts whose order is that of the values. */
  readonly value: string | number | bigint | boolean;
  /** The value in JSON. */
  readonly json: string;
}

type EdmType = 'String' | 'Boolean' | 'Int32' | 'Int64' | 'Double' | 'DateTime' | 'Guid' | 'Binary';

/** https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model */
const MAX_TEXT_LENGTH = 32_768;
const MAX_BINARY_BYTES = 65_536;
const GUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;
const INT64 = /^[+-]?\d{1,19}$/;
const MAX_INT32 = 2 ** 31;

/** Types whose JSON does not tell them; a response names them. */
const ANNOTATED: ReadonlySet<EdmType> = new Set(['Int64', 'DateTime', 'Guid', 'Binary']);
const NAMED_DOUBLES = new Set(['NaN', 'Infinity', '-Infinity']);

/** Reads a property of a JSON body, or a literal of a filter. Throws `InvalidInput` if the value does not have the type. */
export function toStoredValue(given: unknown, annotation: unknown): StoredValue {
  const type = annotation === undefined ? inferType(given) : String(annotation).replace(/^Edm\./, '');
  switch (type) {
    case 'String':
      return toText(given);
    case 'Boolean':
      return typeof given === 'boolean' ? { type, value: given, json: String(given) } : reject(given, type);
    case 'Int32':
      return toInt32(Number(given));
    case 'Int64':
      return toInt64(String(given));
    case 'Double':
      return toDouble(given);
    case 'DateTime':
      return toDateTime(String(given));
    case 'Guid':
      return GUID.test(String(given)) ? textual(type, String(given), String(given).toLowerCase()) : reject(given, type);
    case 'Binary':
      return toBinary(Buffer.from(String(given), 'base64'), String(given));
    default:
      return reject(given, type);
  }
}

function inferType(given: unknown): string {
  if (typeof given === 'string') return 'String';
  if (typeof given === 'boolean') return 'Boolean';
  // The service reads a number in JSON that has an exponent as a Double.
  if (typeof given === 'number') return /^-?\d+$/.test(String(given)) ? 'Int32' : 'Double';
  return typeof given;
}

function toText(given: unknown): StoredValue {
  const text = String(given);
  if (text.length > MAX_TEXT_LENGTH) throw tooLarge();
  return textual('String', text);
}

function toInt32(value: number): StoredValue {
  if (!Number.isInteger(value) || value < -MAX_INT32 || value >= MAX_INT32) return reject(value, 'Int32');
  return { type: 'Int32', value, json: String(value) };
}

function toInt64(text: string): StoredValue {
  const value = INT64.test(text) ? BigInt(text) : undefined;
  if (value === undefined || BigInt.asIntN(64, value) !== value) return reject(text, 'Int64');
  return { type: 'Int64', value, json: JSON.stringify(text) };
}

function toDouble(given: unknown): StoredValue {
  const value = Number(given);
  if (Number.isFinite(value)) {
    const json = Number.isInteger(value) && !String(value).includes('e') ? value.toFixed(1) : String(value);
    return { type: 'Double', value, json };
  }
  if (!NAMED_DOUBLES.has(String(given))) return reject(given, 'Double');
  return { type: 'Double', value, json: JSON.stringify(String(given)) };
}

/** The seven digits after the second are kept. */
function toDateTime(text: string): StoredValue {
  const [, seconds, fraction = '', zone = ''] = /^([\dT:-]+)(\.\d{1,7})?(Z|[+-]\d\d:\d\d)?$/.exec(text) ?? [];
  const time = seconds && Date.parse(`${seconds}${zone || 'Z'}`);
  if (typeof time !== 'number' || Number.isNaN(time)) return reject(text, 'DateTime');
  const whole = new Date(time).toISOString().slice(0, 19);
  return textual(
    'DateTime',
    `${zone === '' || zone === 'Z' ? `${seconds}${fraction}` : `${whole}${fraction}`}Z`,
    `${whole}.${fraction.slice(1).padEnd(7, '0')}Z`,
  );
}

function toBinary(bytes: Buffer, text: string): StoredValue {
  if (bytes.length > MAX_BINARY_BYTES) throw tooLarge();
  return textual('Binary', text, bytes.toString('hex'));
}

export function textual(type: EdmType, text: string, value = text): StoredValue {
  return { type, value, json: JSON.stringify(text) };
}

/** The bytes that count toward the limit of an entity, without the name. */
export function sizeOf({ type, value }: StoredValue): number {
  if (type === 'String') return 4 + 2 * String(value).length;
  if (type === 'Binary') return 4 + String(value).length / 2;
  return { Boolean: 1, Int32: 4, Int64: 8, Double: 8, DateTime: 8, Guid: 16 }[type];
}

/** True if the type of a response's JSON value must be named. */
export function isAnnotated({ type, value }: StoredValue): boolean {
  return ANNOTATED.has(type) || (type === 'Double' && !Number.isFinite(value as number));
}

/** Compares values of one type; numbers of all types are compared by value. Undefined if they have no order. */
export function compareValues(one: StoredValue, other: StoredValue): number | undefined {
  const isNumber = ({ type }: StoredValue) => type === 'Int32' || type === 'Int64' || type === 'Double';
  if (one.type !== other.type && !(isNumber(one) && isNumber(other))) return undefined;
  if (one.value < other.value) return -1;
  if (one.value > other.value) return 1;
  // biome-ignore lint/suspicious/noDoubleEquals: an Int64 is a bigint
  return one.value == other.value ? 0 : undefined;
}

function reject(given: unknown, type: string): never {
  throw new StorageRejection(
    400,
    'InvalidInput',
    `Error encountered while converting the value ${String(given).slice(0, 50)} to ${type}.`,
  );
}

function tooLarge(): StorageRejection {
  return new StorageRejection(
    400,
    'PropertyValueTooLarge',
    'The property value exceeds the maximum allowed size (64KB).',
  );
}
