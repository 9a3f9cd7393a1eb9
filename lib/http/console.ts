import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';
import type { HttpRequest, HttpResponseInit, InvocationContext } from '@azure/functions';
import { toContentEtag } from '../base/content-etag.ts';
import { RowkeyError } from '../base/errors.ts';
import { loadOnce } from '../base/once.ts';
import { isNamed } from '../define/declaration/conditions.ts';
import { accountsOf, type Storage } from '../storage/storage.ts';
import { parseEncodings } from './built-once.ts';
import type { Handler } from './handler.ts';
import { catchProblems } from './response.ts';

/** How people sign in to the console. */
export interface ConsoleSettings {
  /** The client id of the console at the identity provider: a public client that uses the code flow with PKCE. */
  readonly clientId: string;
  /** The address of the provider's discovery document without `/.well-known/…`. Default: the issuer of the accepted tokens. */
  readonly issuer?: string | undefined;
  /** The scopes that the console asks for. Default: `openid`. */
  readonly scope?: string | undefined;
  /** Other origins of the provider that the console calls, such as that of its token endpoint. */
  readonly connectTo?: readonly string[] | undefined;
}

/** What the console needs to know of the app. */
export interface ConsoleApp {
  readonly storage: Storage;
  /** Undefined if the console is off. */
  readonly console: (ConsoleSettings & { readonly issuer: string }) | undefined;
}

interface ConsoleOptions {
  /** The folder of the built console. */
  readonly folder: string;
  /** The root of the API: `/api`. */
  readonly root: string;
}

/** The address of the console, which is also in its build. */
export const CONSOLE_PATH = '/console';
/** The address of the page that renders the OpenAPI description. */
export const DOCS_PATH = '/docs';
/** Files that a page names by the hash of their content: an unknown one is not a page of the console. */
const ASSETS = 'assets/';
const CONFIG = 'config.json';
const INDEX = 'index.html';
const DEFAULT_SCOPE = 'openid';

/** Serves the console. Its pages have paths of their own, so an unknown path returns the page that starts the console. */
export function createConsoleHandler(app: () => ConsoleApp, { folder, root }: ConsoleOptions): Handler {
  const files = createStaticFolder(folder);

  async function respond(path: string, request: HttpRequest): Promise<HttpResponseInit> {
    const { console, storage } = app();
    if (!console) throw consoleIsOff();
    const { issuer, clientId, scope = DEFAULT_SCOPE, connectTo = [] } = console;
    const accounts = accountsOf(storage);
    const [tables, blobs] = [
      accounts.map((account) => account.tables.url),
      accounts.map((account) => account.blobs.url),
    ];
    const policy = toSecurityPolicy({ issuer, connectTo, tables, blobs });
    const headers = { ...SECURITY_HEADERS, 'content-security-policy': policy };
    if (path === CONFIG) {
      const config = { issuer, clientId, scope, apiUrl: root };
      return { status: 200, headers: { ...headers, 'cache-control': 'no-cache' }, jsonBody: config };
    }
    const found = await files.respond(path, request);
    const response = found ?? (path.startsWith(ASSETS) ? undefined : await files.respond(INDEX, request));
    if (!response) throw new RowkeyError('not-found', 'The console has no such file.', { accepted: CONSOLE_PATH });
    return { ...response, headers: { ...response.headers, ...headers } };
  }

  return (request, invocation) => serve(request, invocation, root, () => respond(request.params.path ?? '', request));
}

/** Serves the page that renders the OpenAPI description. Its renderer sets styles inline, so it has a policy of its own. */
export function createDocsHandler(app: () => ConsoleApp, { folder, root }: ConsoleOptions): Handler {
  const files = createStaticFolder(folder);
  return (request, invocation) =>
    serve(request, invocation, root, async () => {
      if (!app().console) throw consoleIsOff();
      const found = await files.respond(request.params.path || INDEX, request);
      if (!found) throw new RowkeyError('not-found', 'The page has no such file.', { accepted: DOCS_PATH });
      return { ...found, headers: { ...found.headers, ...SECURITY_HEADERS, 'content-security-policy': DOCS_POLICY } };
    });
}

function consoleIsOff(): RowkeyError {
  return new RowkeyError('not-found', 'The console is off.', { accepted: 'the setting CONSOLE_CLIENT_ID' });
}

/** Leads from `/` to the console. Other paths that no function has are not found. */
export function createRootHandler(app: () => ConsoleApp, { root }: Pick<ConsoleOptions, 'root'>): Handler {
  return (request, invocation) =>
    serve(request, invocation, root, async () => {
      if (app().console && (request.params.path ?? '') === '')
        return { status: 302, headers: { location: CONSOLE_PATH } };
      throw new RowkeyError('not-found', 'No route matches the path.', {
        field: 'path',
        accepted: `the paths in ${root}/openapi.json`,
      });
    });
}

async function serve(
  request: HttpRequest,
  invocation: InvocationContext,
  root: string,
  respond: () => Promise<HttpResponseInit>,
): Promise<HttpResponseInit> {
  const response = await catchProblems(invocation, root, respond);
  if (request.method !== 'HEAD') return response;
  const { body: _, jsonBody: __, ...head } = response;
  return head;
}

const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
};

const DOCS_POLICY = formatPolicy({
  'default-src': "'self'",
  'style-src': "'self' 'unsafe-inline'",
  'img-src': "'self' data:",
  'object-src': "'none'",
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
});

interface Origins {
  readonly issuer: string;
  readonly connectTo: readonly string[];
  /** The URLs of the services of each storage account. */
  readonly tables: readonly string[];
  readonly blobs: readonly string[];
}

/** The console runs only its own code, and sends data only to the API, to storage with grants, and to the issuer. */
function toSecurityPolicy({ issuer, connectTo, tables, blobs }: Origins): string {
  const origins = (...urls: readonly string[]) => [...new Set(urls.map((url) => new URL(url).origin))].join(' ');
  const directives = {
    'default-src': "'self'",
    'connect-src': `'self' ${origins(...tables, ...blobs, issuer, ...connectTo)}`,
    'img-src': `'self' data: blob: ${origins(...blobs)}`,
    'media-src': `'self' blob: ${origins(...blobs)}`,
    'object-src': "'none'",
    'base-uri': "'none'",
    'form-action': "'self'",
    'frame-ancestors': "'none'",
  };
  return formatPolicy(directives);
}

function formatPolicy(directives: Readonly<Record<string, string>>): string {
  return Object.entries(directives)
    .map((directive) => directive.join(' '))
    .join('; ');
}

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
/** The ending of the copy in Brotli that the build writes beside a file. A deployed package has only the copy. */
const PACKED = '.br';
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

/** Serves the files that a folder has at the first request, compressed or not, and no other file. Keeps their content in memory. */
export function createStaticFolder(folder: string): StaticFolder {
  const list = loadOnce(() => listFiles(folder));
  const contents = new Map<string, () => Promise<Content>>();

  function read(file: string, isUnpacked: boolean): Promise<Content> {
    const key = `${file} ${isUnpacked}`;
    const load = contents.get(key) ?? loadOnce(() => readContent(join(folder, file), isUnpacked));
    contents.set(key, load);
    return load();
  }

  return {
    async respond(path, request) {
      const files = await list();
      const packed = `${path}${PACKED}`;
      const isPacked = files.has(packed);
      if (!isPacked && !files.has(path)) return undefined;
      const isUnpacked = isPacked && !parseEncodings(request.headers.get('accept-encoding')).includes('br');
      const { bytes, etag } = await read(isPacked ? packed : path, isUnpacked);
      const headers = {
        'cache-control': path.startsWith(HASHED) ? `public, max-age=${A_YEAR_IN_SECONDS}, immutable` : 'no-cache',
        etag,
        vary: 'Accept-Encoding, Origin',
      };
      if (isNamed(request.headers.get('if-none-match') ?? '', etag)) return { status: 304, headers };
      const type = { 'content-type': TYPES[extname(path)] ?? 'application/octet-stream' };
      const coding = isPacked && !isUnpacked ? { 'content-encoding': 'br' } : {};
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

async function readContent(file: string, isUnpacked: boolean): Promise<Content> {
  const content = await readFile(file);
  const bytes = isUnpacked ? await promisify(brotliDecompress)(content) : content;
  return { bytes, etag: toContentEtag(bytes) };
}
