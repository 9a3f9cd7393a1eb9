import { createHash } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { resolve, sep } from 'node:path';
import { z } from 'zod';
import { RowkeyError } from '../../lib/base/errors.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { checkFile, SAMPLE_BYTES } from '../../lib/features/large-entities/attachment.ts';
import { Problem } from '../../lib/http/problem.ts';
import type { ImportRow } from './csv-rows.ts';
import { ask, type Target } from './target.ts';

/** Files of imported rows: base64 in the row, or the name of a file in the folder of `--files`. */

export interface RowFile {
  readonly field: string;
  /** The name of the file in a message. */
  readonly name: string;
  /** A file on disk is read when it is needed, in parts. */
  readonly content: Blob;
}

const Encoded = z.object({ base64: z.base64() });
/** A cell with digits only is a number. */
const FileName = z.union([z.string(), z.number()]).transform(String);

/** Opens the files of a row and checks their size and type. Throws `invalid-input`, `too-large`, `unsupported-media-type`. */
export async function openFiles(entity: Entity, { values }: ImportRow, folder: string | undefined): Promise<RowFile[]> {
  const files: RowFile[] = [];
  for (const field of Object.keys(entity.attachments)) {
    if (values[field] === undefined) continue;
    const file = await openFile(field, values[field], folder);
    const sample = await file.content.slice(0, SAMPLE_BYTES).bytes();
    try {
      await checkFile(entity, field, sample, file.content.size);
    } catch (error) {
      if (error instanceof RowkeyError) throw new RowkeyError(error.code, `${file.name}: ${error.message}`);
      throw error;
    }
    files.push(file);
  }
  return files;
}

async function openFile(field: string, value: unknown, folder: string | undefined): Promise<RowFile> {
  const encoded = Encoded.safeParse(value);
  if (encoded.success) return { field, name: field, content: new Blob([Buffer.from(encoded.data.base64, 'base64')]) };
  const named = FileName.safeParse(value);
  if (folder === undefined || !named.success)
    throw new RowkeyError(
      'invalid-input',
      `"${field}" must be {"base64": "…"} with the bytes of the file, or the name of a file in the folder of --files.`,
    );
  const name = named.data;
  const root = await realpath(folder);
  const path = await realpath(resolve(root, name)).catch(() => undefined);
  // The import file may come from somebody else, and must not read files of this machine.
  if (path === undefined || !path.startsWith(root + sep))
    throw new RowkeyError('invalid-input', `"${field}": the file ${name} was not found in ${folder}.`);
  const content = await openAsBlob(path).catch(() => {
    throw new RowkeyError('invalid-input', `"${field}": the file ${name} cannot be read.`);
  });
  return { field, name, content };
}

type FileOutcome = 'uploaded' | 'unchanged' | { readonly reason: string };

/** Stores a file at a path of the API. A file that is stored already is not sent, unless `isNew`. */
export async function putFile(
  target: Target,
  path: string,
  { name, content }: RowFile,
  { isNew }: { readonly isNew: boolean },
): Promise<FileOutcome> {
  if (!isNew) {
    const headers = { 'if-none-match': await etagsOf(content) };
    if ((await ask(target, path, { method: 'HEAD', headers })).status === 304) return 'unchanged';
  }
  const response = await ask(target, path, { method: 'PUT', body: content });
  return response.ok ? 'uploaded' : { reason: `${name}: ${Problem.parse(await response.json()).detail}` };
}

/** The ETags that the file may have: by SHA-256, or by MD5 if it was uploaded directly to storage. */
async function etagsOf(content: Blob): Promise<string> {
  const hashes = [createHash('sha256'), createHash('md5')];
  for await (const chunk of content.stream()) for (const hash of hashes) hash.update(chunk);
  return hashes.map((hash) => `"${hash.digest('base64url')}"`).join(', ');
}
