import { hash } from 'node:crypto';

/** The strong ETag of some content: 132 bits of its SHA-256. */
export function toContentEtag(content: string | Uint8Array): string {
  return `"${hash('sha256', content, 'base64url').slice(0, 22)}"`;
}
