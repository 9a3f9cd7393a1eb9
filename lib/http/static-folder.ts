import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import { toContentEtag } from '../base/content-etag.ts';
import { loadOnce } from '../base/once.ts';
import { isNamed } from '../define/declaration/conditions.ts';
import { parseEncodings } from './encodings.ts';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.txt': 'text/plain; charset=utf-8',
};
/** Compressed copies that the build writes beside a file, the smallest first. */
const COPIES = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const;
/** Vite puts the hash of the content into the names of the files in this folder, so their content never changes. */
const HASHED = 'assets/';
const A_YEAR_IN_SECONDS = 31_536_000;

interface Content {
  readonly bytes: Uint8Array;
  readonly etag: string;
}

interface StaticFolder {
  /** Undefined if the folder does not exist or has no such file. */
  respond(path: string, request: HttpRequest): Promise<HttpResponseInit | undefined>;
}

/** Serves the files that a folder has at the first request, and no other file. Keeps their content in memory. */
export function createStaticFolder(folder: string): StaticFolder {
  const list = loadOnce(() => listFiles(folder));
  const contents = new Map<string, () => Promise<Content>>();

  function read(file: string): Promise<Content> {
    const load = contents.get(file) ?? loadOnce(() => readContent(join(folder, file)));
    contents.set(file, load);
    return load();
  }

  return {
    async respond(path, request) {
      const files = await list();
      if (!files.has(path)) return undefined;
      const accepted = parseEncodings(request.headers.get('accept-encoding'));
      const [encoding, ending = ''] =
        COPIES.find(([name, copy]) => accepted.includes(name) && files.has(`${path}${copy}`)) ?? [];
      const { bytes, etag } = await read(`${path}${ending}`);
      const headers = {
        'cache-control': path.startsWith(HASHED) ? `public, max-age=${A_YEAR_IN_SECONDS}, immutable` : 'no-cache',
        etag,
        vary: 'Accept-Encoding',
      };
      if (isNamed(request.headers.get('if-none-match') ?? '', etag)) return { status: 304, headers };
      const type = { 'content-type': TYPES[extname(path)] ?? 'application/octet-stream' };
      const coding = encoding ? { 'content-encoding': encoding } : {};
      return { status: 200, headers: { ...headers, ...type, ...coding }, body: bytes };
    },
  };
}

async function listFiles(folder: string): Promise<ReadonlySet<string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch((error) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  });
  const files = entries.filter((entry) => entry.isFile());
  return new Set(files.map(({ parentPath, name }) => relative(folder, join(parentPath, name)).replaceAll(sep, '/')));
}

async function readContent(file: string): Promise<Content> {
  const bytes = await readFile(file);
  return { bytes, etag: toContentEtag(bytes) };
}
