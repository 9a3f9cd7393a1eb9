import { createHash } from 'node:crypto';

/** The strong ETag of some content: 132 bits of its SHA-256. */
export function toContentEtag(content: string | Uint8Array): string {
  return `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
}
