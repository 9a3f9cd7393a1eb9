import { supportedMimeTypes } from 'file-type';
import { z } from 'zod';
import { hasValue, pick, type Values, WrongValue } from '../../base/values.ts';
import {
  BLOB_PREFIX,
  isInBlob,
  MAX_STRING_LENGTH,
  parseJson,
  splitText,
  tooLong,
} from '../../define/codec/entity-codec.ts';
import { Attachment, readDescription } from '../../define/declaration/attachment.ts';
import type { Entity, Feature } from '../../define/declaration/entity.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import { keysWith } from '../../define/validate/feature-errors.ts';
import {
  createBlobName,
  hasText,
  LARGE_CONTAINER,
  loadText,
  sha256,
  storeText,
  toReferrer,
} from '../../engine/read/text-blobs.ts';
import { type BlobAddress, copyBlob, type Tier } from '../../storage/blobs.ts';
import type { Address } from '../../storage/rows.ts';
import type { Storage } from '../../storage/storage.ts';

/**
 * Large entities pattern: a text that is too long for one property is split over several properties, and a longer one is
 * stored in a blob. A file is always a blob. The row has the name of the blob. Each blob has a unique name and is written once,
 * before the row that refers to it. It is deleted after the row stops referring to it. So a reader never sees a part of a
 * value. A timer deletes the blobs that a crash leaves behind.
 */
export const largeEntities: Feature = {
  name: 'large entities',
  isUsed: ({ large, compressed, attachments }) =>
    large.length > 0 || compressed.length > 0 || Object.keys(attachments).length > 0,
  *validate(entity, { containers, entities }) {
    yield* textErrors(entity);
    yield* attachmentErrors(entity, containers);
    yield* tierErrors(entity, entities);
  },
  keptFields: ({ attachments }) => Object.keys(attachments),
  stored: {
    references: ({ large }) => large,
    unlistedFields: ({ large }) => large,
    columns: {
      names: (entity, field) =>
        entity.large.includes(field) ? [...partNames(entity, field), blobProperty(field)] : undefined,
      encode(entity, field, value) {
        if (!entity.large.includes(field)) return undefined;
        if (isInBlob(value)) return [[blobProperty(field), JSON.stringify(value)]];
        const text = String(value);
        if (!fitsRow(entity, text)) throw tooLong(field, MAX_STRING_LENGTH * countParts(entity));
        const parts = splitText(text, MAX_STRING_LENGTH);
        return parts.length === 0 ? [[field, '']] : parts.map((part, index) => [partProperty(field, index), part]);
      },
      decode(entity, field, properties) {
        const inBlob = properties[blobProperty(field)];
        if (hasValue(inBlob)) {
          const reference = typeof inBlob === 'string' ? parseJson(inBlob) : undefined;
          return isInBlob(reference) ? reference : new WrongValue({ [blobProperty(field)]: inBlob });
        }
        if (!hasValue(properties[field])) return undefined;
        const parts = partNames(entity, field).map((name) => properties[name] ?? '');
        if (parts.every((part) => typeof part === 'string')) return parts.join('');
        return new WrongValue(pick(properties, partNames(entity, field)));
      },
      longest: (entity) => MAX_STRING_LENGTH * countParts(entity),
    },
    async store({ storage }, entity, values, current) {
      const stored: Record<string, unknown> = {};
      for (const field of entity.large) {
        const text = values[field];
        if (typeof text !== 'string' || fitsRow(entity, text)) continue;
        const before = current[field];
        const isSame = isInBlob(before) && before.length === text.length && before.sha256 === sha256(text);
        const isThere = isSame && (await hasText(storage, before));
        const options = { isCompressed: entity.compressed.includes(field) };
        stored[field] = isThere ? before : await storeText(storage, addressOf(entity, values), field, text, options);
      }
      return { ...values, ...stored };
    },
    async load({ storage }, _entity, values, field) {
      const value = values[field];
      return isInBlob(value) ? loadText(storage, value) : undefined;
    },
    blobs: {
      of: blobsOf,
      containers: ({ attachments }) => Object.values(attachments).map(({ container }) => container),
      properties: ({ large, attachments }) => [...large.map(blobProperty), ...Object.keys(attachments)],
      copy: ({ storage }, entity, values, to) => copyBlobs(storage, entity, values, to),
    },
  },
  memory: {
    remember: ({ large, attachments }) => ({
      large,
      attachments: Object.fromEntries(Object.entries(attachments).map(([field, { container }]) => [field, container])),
    }),
    *refuse(entity, before) {
      const { large, attachments } = Memory.parse(before);
      // A field that becomes large stays readable.
      for (const field of large.filter((each) => !entity.large.includes(each)))
        yield `the field ${field} was declared large`;
      for (const [field, container] of Object.entries(attachments))
        if (!Object.hasOwn(entity.attachments, field) || entity.attachments[field]?.container !== container)
          yield `the container of the attachment ${field} changed from ${container}; stored files would not be found`;
    },
  },
  check: {
    unreadable: ({ attachments }, values) =>
      Object.keys(attachments).filter(
        (field) => values[field] !== undefined && !Attachment.safeParse(values[field]).success,
      ),
  },
};

/** Earlier releases stored no containers. */
const Memory = z.object({
  large: z.array(z.string()).default([]),
  attachments: z.record(z.string(), z.string()).default({}),
});

/** https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata */
const CONTAINER_NAME = /^(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*$/;
/**
 * The Functions host keeps its locks and secrets there, the deployment (infra/main.bicep) and the platform (scm-releases) their
 * packages, and Azure Monitor its logs.
 */
const HOST_CONTAINERS = /^(azure-.*|insights-.*|scm-releases|deployments)$/;
/** The Functions host accepts no larger body. */
const MAX_FILE_BYTES = 104_857_600;
const YEAR_S = 31_536_000;

function* textErrors(entity: Entity): Generator<string> {
  const { large, columns, indexes } = entity;
  const inCopies = large.filter((field) => !entity.apartFields.includes(field));
  for (const field of large) {
    if (columns[field] !== 'String') yield `the large field "${field}" is not a text. Declare it as z.string().`;
    for (const key of keysWith(entity, field))
      yield `the large field "${field}" is in ${key}, and a key is at most 512 characters. Remove it from large, or from ${key}.`;
  }
  for (const field of entity.compressed)
    if (!large.includes(field)) yield `the compressed field "${field}" is not in large. Add it to large, or remove it.`;
  for (const [name, index] of Object.entries(indexes))
    if (inCopies.length > 0 && 'copies' in index && index.copies === 'everything')
      yield `the index "${name}" copies everything, and ${inCopies.join(', ')} may be large. Set copies to 'keys' or to a list of other fields.`;
}

function* attachmentErrors({ attachments, access }: Entity, reserved: readonly string[]): Generator<string> {
  for (const [field, { container, maxBytes, types, maxAge, public: isPublic }] of Object.entries(attachments)) {
    const what = `the attachment "${field}"`;
    if (!CONTAINER_NAME.test(container))
      yield `${what} has the container name "${container}", which is not accepted. Use 3 to 63 lower-case letters, digits and single hyphens.`;
    if (reserved.includes(container) || HOST_CONTAINERS.test(container))
      yield `the container "${container}" of ${what} is reserved, and its files would be deleted or mixed with others. Choose a name other than ${reserved.join(', ')}, deployments, scm-releases, azure-… and insights-….`;
    if (!Number.isInteger(maxBytes) || maxBytes < 1 || maxBytes > MAX_FILE_BYTES)
      yield `${what} has maxBytes ${maxBytes}. Use a whole number from 1 to ${MAX_FILE_BYTES}, which is the largest body of the Functions host.`;
    if (maxAge !== undefined && (!Number.isInteger(maxAge) || maxAge < 0 || maxAge > YEAR_S))
      yield `${what} has maxAge ${maxAge}. Use a whole number of seconds from 0 to ${YEAR_S}.`;
    if (isPublic && access.restricted?.[field])
      yield `${what} is public and restricted (access.restricted). Remove public, or the restriction.`;
    if (types.length === 0) yield `${what} accepts no type. Add one to types, such as image/png.`;
    for (const type of types)
      if (!(supportedMimeTypes as ReadonlySet<string>).has(type))
        yield `${what} accepts ${type}, which cannot be told from a file's bytes, so no file would be accepted. Use types such as image/png.`;
  }
}

const MAX_COOL_AFTER_DAYS = 3_650;

function* tierErrors({ attachments }: Entity, entities: readonly Entity[]): Generator<string> {
  for (const [field, { container, tier, coolAfterDays }] of Object.entries(attachments)) {
    const what = `the attachment "${field}"`;
    if (tier !== undefined && tier !== 'cool' && tier !== 'cold')
      yield `${what} has the tier "${tier}". Use cool or cold, or none for that of the account.`;
    if (coolAfterDays === undefined) continue;
    if (!Number.isInteger(coolAfterDays) || coolAfterDays < 1 || coolAfterDays > MAX_COOL_AFTER_DAYS)
      yield `${what} has coolAfterDays ${coolAfterDays}. Use a whole number from 1 to ${MAX_COOL_AFTER_DAYS}.`;
    if (tier !== undefined) yield `${what} is stored in the tier ${tier}. Remove tier or coolAfterDays.`;
    const others = entities.flatMap((other) => Object.values(other.attachments));
    if (others.some((other) => other.container === container && other.coolAfterDays !== coolAfterDays))
      yield `${what} has coolAfterDays ${coolAfterDays}, and another attachment in its container "${container}" has not. Use a container of its own.`;
  }
}

/** The most properties for large texts: half of the size of an entity. All large fields share them. Longer texts go to a blob. */
const MAX_PARTS = 8;

/** True if the row holds the text, in one property or in several. */
function fitsRow(entity: Entity, text: string): boolean {
  // A part may be one code unit shorter, because a surrogate pair is never split.
  return text.length <= (MAX_STRING_LENGTH - 1) * countParts(entity);
}

function countParts({ large }: Entity): number {
  return Math.max(1, Math.floor(MAX_PARTS / Math.max(1, large.length)));
}

function partNames(entity: Entity, field: string): string[] {
  return Array.from({ length: countParts(entity) }, (_, index) => partProperty(field, index));
}

function partProperty(field: string, index: number): string {
  return index === 0 ? field : `Part${index + 1}_${field}`;
}

function blobProperty(field: string): string {
  return `${BLOB_PREFIX}${field}`;
}

/** Lets storage copy the blobs of an entity that moves to `address`. A reference whose blob is missing is left out. */
async function copyBlobs(storage: Storage, entity: Entity, values: Values, address: Address): Promise<Values> {
  const copies: Record<string, unknown> = {};
  const copy = async (field: string, container: string, value: { readonly blob: string }, tier?: Tier) => {
    const to = { container, name: createBlobName(address, field) };
    const metadata = toReferrer(address);
    if (await copyBlob(storage, { from: { container, name: value.blob }, to }, { metadata, tier }))
      copies[field] = { ...value, blob: to.name };
  };
  for (const field of entity.large) {
    const value = values[field];
    if (isInBlob(value)) await copy(field, LARGE_CONTAINER, value);
  }
  for (const [field, { container, tier }] of Object.entries(entity.attachments)) {
    const value = values[field];
    if (value !== undefined) await copy(field, container, readDescription(entity, field, value), tier);
  }
  return copies;
}

function blobsOf(entity: Entity, values: Values): BlobAddress[] {
  const texts = entity.large.flatMap((field) => {
    const value = values[field];
    return isInBlob(value) ? [{ container: LARGE_CONTAINER, name: value.blob }] : [];
  });
  const files = Object.entries(entity.attachments).flatMap(([field, { container }]) => {
    const value = values[field];
    return hasBlob(value) ? [{ container, name: value.blob }] : [];
  });
  return [...texts, ...files];
}

function hasBlob(value: unknown): value is { readonly blob: string } {
  return typeof value === 'object' && value !== null && 'blob' in value && typeof value.blob === 'string';
}
