import { z } from 'zod';

/** What stands in the engine for a value that the row does not have as it is; it is passed on as it is. */

/** Of an encrypted property: see encrypted-properties.ts. */
export interface Sealed {
  readonly sealed: string;
}

/** Of a text that is too long for its row: see large-entities.ts. */
export interface InBlob {
  readonly blob: string;
  /** In UTF-16 code units, as texts are measured. */
  readonly length: number;
  readonly sha256: string;
}

/** What is declared of a file that an entity may have: see attachment.ts. */
export interface AttachmentDeclaration {
  readonly container: string;
  readonly maxBytes: number;
  /** Those that can be told from the bytes. */
  readonly types: readonly string[];
}

/** What an entity says of its blob. */
export const Attachment = z.object({
  blob: z.string(),
  type: z.string(),
  bytes: z.int32(),
  sha256: z.string(),
});
export type Attachment = z.infer<typeof Attachment>;

export function isSealed(value: unknown): value is Sealed {
  return typeof value === 'object' && value !== null && 'sealed' in value && typeof value.sealed === 'string';
}

export function isInBlob(value: unknown): value is InBlob {
  return typeof value === 'object' && value !== null && 'blob' in value && 'sha256' in value && 'length' in value;
}

export function isReference(value: unknown): value is Sealed | InBlob {
  return isSealed(value) || isInBlob(value);
}

/** A reference in a row stands for nothing that can be read: it was changed, or what it refers to is gone. */
export class ReferenceBroken extends Error {
  override readonly name: string = 'ReferenceBroken';
}

/** Begins the name of the property that refers to the blob of a field. */
export const BLOB_PREFIX = 'Blob_';
