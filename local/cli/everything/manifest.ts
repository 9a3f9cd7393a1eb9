import { hash } from 'node:crypto';
import { z } from 'zod';
import type { Values } from '../../../lib/base/values.ts';

export const MANIFEST = 'manifest.json';

/** The last member of the file: what the others must be. Files of rows have their hash in the row. */
export const Manifest = z.object({
  format: z.literal('rowkey-export'),
  formatVersion: z.literal(1),
  exportedAt: z.iso.datetime(),
  kinds: z.record(
    z.string(),
    z.object({ version: z.int(), fields: z.array(z.string()), rows: z.int(), files: z.int() }),
  ),
  periodArchives: z.record(z.string(), z.object({ rows: z.int(), hash: z.string() })),
  members: z.record(z.string(), z.object({ rows: z.int(), sha256: z.string() })),
  /** What the file lacks, in sentences. */
  missing: z.array(z.string()),
});
export type Manifest = z.infer<typeof Manifest>;

/** The member of a row that has its files by field. No field has such a name. */
export const FILES = '$files';

/** A file of a row. */
export const FileReference = z.object({
  file: z.string(),
  type: z.string(),
  bytes: z.int(),
  sha256: z.string(),
});
export type FileReference = z.infer<typeof FileReference>;

/** The files of a row by field. */
export function filesOf(row: Values): Readonly<Record<string, FileReference>> {
  return z.record(z.string(), FileReference).parse(row[FILES] ?? {});
}

export function sha256(bytes: Uint8Array | string): string {
  return hash('sha256', bytes, 'hex');
}

/** The kind of a member with rows, or the name of its period archive. */
export function parseMemberName(
  name: string,
): { readonly kind: string } | { readonly periodArchive: string } | undefined {
  const [, folder, of = ''] = /^(rows|period-archives)\/(.+)\/\d+\.ndjson$/.exec(name) ?? [];
  if (folder === 'rows') return { kind: of };
  return folder === undefined ? undefined : { periodArchive: of };
}

/** What no export has, for the person who restores. */
export const NOT_EXPORTED =
  'Not exported: ETags and times of change, the audit log, grants and their revocations, blocked users, keys of repeated requests, running operations, poison messages.';

/** Text in which members have one order, so that equal values have equal texts. */
export function canonicalText(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) =>
    typeof one === 'object' && one !== null && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : one,
  );
}

export function toLines(bytes: Uint8Array): string[] {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  return text.split('\n').filter((line) => line !== '');
}

export function fromLines(lines: readonly string[]): Uint8Array {
  return new TextEncoder().encode(lines.map((line) => `${line}\n`).join(''));
}
