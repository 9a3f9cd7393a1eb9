import { z } from 'zod';
import { RowkeyError } from '../../base/errors.ts';
import { anything, names, optionsOf } from '../schema/options.ts';

/** A declared file of an entity: see attachment.ts. */
export const AttachmentDeclaration = optionsOf({
  /** The container of the blobs. */
  container: z.string(),
  /** The size of the largest accepted file: up to 100 MiB. */
  maxBytes: anything<number>(),
  /** The accepted media types: those that can be recognized by their first bytes. The `Content-Type` of a request is not trusted. */
  types: names,
  /** Anyone who knows the URL may read the file, without a token. The entity stays protected. */
  public: z.boolean().optional(),
  /** Seconds for which clients, and for a public file also shared caches, may reuse the file without a new request. */
  maxAge: anything<number>().optional(),
  /** The access tier in which files are stored; by default that of the account. */
  tier: anything<'cool' | 'cold'>().optional(),
  /** Days after which storage moves a file to the cool tier: a lifecycle rule of the deployment. */
  coolAfterDays: anything<number>().optional(),
});
export type AttachmentDeclaration = z.output<typeof AttachmentDeclaration>;

/** The stored description of an attachment. */
export const Attachment = z
  .object({
    blob: z.string(),
    type: z.string(),
    bytes: z.int32(),
    /** The hash of a file that was sent through the API, in base64url. */
    sha256: z.string().optional(),
    /** The hash of a file that was uploaded directly to storage, which storage computes itself, in base64url. */
    md5: z.string().optional(),
  })
  .meta({ title: 'stored-file' });
export type Attachment = z.infer<typeof Attachment>;

/** Returns a stored description of an attachment. Throws `needs-repair` if it was changed outside the API. */
export function readDescription({ name }: { readonly name: string }, field: string, stored: unknown): Attachment {
  const { data } = Attachment.safeParse(stored);
  if (data) return data;
  throw new RowkeyError('needs-repair', `"${field}" of an entity of ${name} cannot be read.`, { field });
}
