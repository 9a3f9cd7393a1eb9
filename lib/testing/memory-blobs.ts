import { createHash, randomUUID } from 'node:crypto';
import { type BlobRights, blobRights } from './signatures.ts';
import { SortedMap } from './sorted-map.ts';
import {
  type Clock,
  element,
  metadataOf,
  StorageRejection,
  type StorageReply,
  type StorageRequest,
  toDocument,
  unescapeXml,
} from './storage-request.ts';

interface Blob {
  readonly type: 'BlockBlob' | 'AppendBlob';
  readonly bytes: Buffer;
  readonly etag: string;
  readonly modifiedAt: number;
  readonly createdAt: number;
  /** `content-type`, `content-md5` and the others that a response repeats. */
  readonly headers: Headers;
  readonly metadata: Headers;
  readonly tier: string | undefined;
  readonly blocks: readonly Block[];
}

interface Block {
  readonly id: string;
  readonly bytes: Buffer;
}

interface Container {
  readonly etag: string;
  readonly modifiedAt: number;
  readonly metadata: Headers;
  readonly blobs: SortedMap<Blob>;
  /** Staged and not committed, by blob. */
  readonly staged: Map<string, Map<string, Buffer>>;
}

type Headers = Readonly<Record<string, string | undefined>>;

interface Options {
  readonly account: string;
  readonly key: string;
  readonly now: Clock;
}

const PAGE_SIZE = 5_000;
/** https://learn.microsoft.com/rest/api/storageservices/append-block */
const MAX_APPEND_BLOCKS = 50_000;
const CONTENT_HEADERS = ['type', 'encoding', 'language', 'disposition'];

/** The accounts of this process by name and key, of which others copy: several worlds may have accounts of one name. */
const accounts = new Map<string, WeakRef<SourceOf>[]>();
type SourceOf = (request: StorageRequest, url: string) => Blob;

/** The blob at a URL, which the key of one of the accounts has signed. */
function findSource(sources: readonly SourceOf[], request: StorageRequest, url: string): Blob {
  let rejection: unknown = notImplemented('a copy of an account that is not in memory');
  for (const sourceOf of sources)
    try {
      return sourceOf(request, url);
    } catch (error) {
      if (!(error instanceof StorageRejection) || error.status !== 403) throw error;
      rejection = error;
    }
  throw rejection;
}

/** Creates a Blob service in memory. It handles a request at once, so each request is atomic. */
export function createMemoryBlobs(options: Options) {
  const { now } = options;
  const containers = new SortedMap<Container>();
  let versions = 0;
  const newVersion = () => {
    versions += 1;
    return { etag: `"0x8D${versions.toString(16).toUpperCase().padStart(13, '0')}"`, modifiedAt: now() };
  };

  function handle(request: StorageRequest): StorageReply {
    const { path, query, headers } = request;
    const slash = path.indexOf('/');
    const [container, name] = slash < 0 ? [path, ''] : [path.slice(0, slash), path.slice(slash + 1)];
    const rights = blobRights({ authorization: headers.get('authorization'), query }, { container, name }, options);
    if (container === '') return listContainers(request, rights);
    return name === '' ? handleContainer(request, container, rights) : handleBlob(request, { container, name }, rights);
  }

  function listContainers({ method, query }: StorageRequest, rights: BlobRights): StorageReply {
    if (method !== 'GET' || query.get('comp') !== 'list') throw notImplemented(`${method} of the account`);
    rights.require('account');
    const { page, next } = pageOf(containers, query);
    const listed = page.map(([name, { etag, modifiedAt }]) =>
      element('Container', element('Name', name), element('Properties', ...formatVersion(etag, modifiedAt))),
    );
    return xml(element('EnumerationResults', element('Containers', ...listed), element('NextMarker', next)));
  }

  function handleContainer(request: StorageRequest, name: string, rights: BlobRights): StorageReply {
    const { method, query, headers } = request;
    if (method === 'GET' && query.get('comp') === 'list') {
      rights.require('l');
      return listBlobs(query, open(name));
    }
    rights.require('account');
    if (query.has('comp')) throw notImplemented(`${method} ${query.get('comp')} of a container`);
    if (method === 'PUT') return createContainer(name, metadataOf(headers));
    const { etag, modifiedAt, metadata } = open(name);
    if (method === 'DELETE') {
      containers.delete(name);
      return { status: 202 };
    }
    return { status: 200, headers: { ...metadata, etag, 'last-modified': formatTime(modifiedAt) } };
  }

  function createContainer(name: string, metadata: Headers): StorageReply {
    if (name.length < 3 || name.length > 63)
      throw new StorageRejection(400, 'OutOfRangeInput', 'The length of the name is not within the limits.');
    if (!/^([a-z\d]+(-[a-z\d]+)*|\$root|\$web)$/.test(name))
      throw new StorageRejection(
        400,
        'InvalidResourceName',
        'The specified resource name contains invalid characters.',
      );
    if (containers.get(name))
      throw new StorageRejection(409, 'ContainerAlreadyExists', 'The specified container already exists.');
    const version = newVersion();
    containers.set(name, { ...version, metadata, blobs: new SortedMap(), staged: new Map() });
    return { status: 201, headers: { etag: version.etag, 'last-modified': formatTime(version.modifiedAt) } };
  }

  function open(name: string): Container {
    const container = containers.get(name);
    if (!container) throw new StorageRejection(404, 'ContainerNotFound', 'The specified container does not exist.');
    return container;
  }

  function handleBlob(request: StorageRequest, at: BlobAddress, rights: BlobRights): StorageReply {
    const { method, query } = request;
    const comp = query.get('comp');
    switch (`${method} ${comp ?? ''}`.trim()) {
      case 'GET':
      case 'HEAD':
        rights.require('r');
        return read(request, requireBlob(at), rights);
      case 'DELETE':
        rights.require('d');
        checkConditions(request, open(at.container).blobs.get(at.name));
        requireBlob(at);
        open(at.container).blobs.delete(at.name);
        return { status: 202 };
      case 'PUT':
        return request.headers.get('x-ms-copy-source') ? copy(request, at, rights) : put(request, at, rights);
      case 'PUT block':
        // Blocks may replace those of a blob that exists, so the permission to create is not enough.
        rights.require('w');
        return stage(request, at);
      case 'PUT blocklist':
        rights.require('w');
        return commit(request, at, rights);
      case 'GET blocklist':
        rights.require('r');
        return listBlocks(request, at);
      case 'PUT appendblock':
        rights.require('a', 'w');
        return append(request, at);
      case 'PUT metadata':
        rights.require('w');
        return change(request, at, { metadata: metadataOf(request.headers) });
      case 'PUT properties':
        rights.require('w');
        return change(request, at, { headers: contentHeaders(request.headers) });
      default:
        throw notImplemented(`${method} ${comp} of a blob`);
    }
  }

  function requireBlob({ container, name }: BlobAddress): Blob {
    const blob = open(container).blobs.get(name);
    if (!blob) throw new StorageRejection(404, 'BlobNotFound', 'The specified blob does not exist.');
    return blob;
  }

  /** Stores a blob under the conditions of the request. */
  function store(
    request: StorageRequest,
    { container, name }: BlobAddress,
    rights: BlobRights,
    content: Pick<Blob, 'type' | 'bytes'> & Partial<Blob>,
  ): Blob {
    rights.require('w', 'c');
    const { blobs, staged } = open(container);
    const former = blobs.get(name);
    if (former && rights.onlyCreates)
      throw new StorageRejection(
        403,
        'UnauthorizedBlobOverwrite',
        'The signature does not permit to overwrite a blob.',
      );
    checkConditions(request, former);
    const { headers } = request;
    const version = newVersion();
    const blob: Blob = {
      ...{ headers: contentHeaders(headers), metadata: metadataOf(headers), blocks: [] },
      ...{ tier: headers.get('x-ms-access-tier'), createdAt: former?.createdAt ?? version.modifiedAt },
      ...content,
      ...version,
    };
    blobs.set(name, blob);
    staged.delete(name);
    return blob;
  }

  function put(request: StorageRequest, at: BlobAddress, rights: BlobRights): StorageReply {
    const { headers, body } = request;
    const type = headers.get('x-ms-blob-type');
    if (type !== 'BlockBlob' && type !== 'AppendBlob') throw notImplemented(`a blob of the type ${type}`);
    const md5 = md5Of(body);
    checkMd5(headers.get('x-ms-blob-content-md5') ?? headers.get('content-md5'), md5);
    const content = type === 'BlockBlob' ? { ...contentHeaders(headers), 'content-md5': md5 } : contentHeaders(headers);
    const stored = store(request, at, rights, { type, bytes: body, headers: content });
    return { status: 201, headers: { ...versionHeaders(stored), 'content-md5': stored.headers['content-md5'] } };
  }

  function stage({ query, headers, body }: StorageRequest, { container, name }: BlobAddress): StorageReply {
    const { staged } = open(container);
    const md5 = md5Of(body);
    checkMd5(headers.get('content-md5'), md5);
    const blocks = staged.get(name) ?? new Map<string, Buffer>();
    staged.set(name, blocks.set(query.get('blockid') ?? '', body));
    return { status: 201, headers: { 'content-md5': md5 } };
  }

  function commit(request: StorageRequest, at: BlobAddress, rights: BlobRights): StorageReply {
    const { blobs, staged } = open(at.container);
    const committed = new Map(blobs.get(at.name)?.blocks.map(({ id, bytes }) => [id, bytes]));
    const uncommitted = staged.get(at.name) ?? new Map<string, Buffer>();
    const named = request.body.toString().matchAll(/<(Latest|Committed|Uncommitted)>([^<]*)<\/\1>/g);
    const blocks = [...named].map(([, where, text = '']) => {
      const id = unescapeXml(text);
      const staged = where === 'Committed' ? undefined : uncommitted.get(id);
      const bytes = staged ?? (where === 'Uncommitted' ? undefined : committed.get(id));
      if (!bytes) throw new StorageRejection(400, 'InvalidBlockList', 'The specified block list is invalid.');
      return { id, bytes };
    });
    const bytes = Buffer.concat(blocks.map((block) => block.bytes));
    return { status: 201, headers: versionHeaders(store(request, at, rights, { type: 'BlockBlob', bytes, blocks })) };
  }

  function listBlocks({ query }: StorageRequest, at: BlobAddress): StorageReply {
    const uncommitted = open(at.container).staged.get(at.name);
    const blob = uncommitted ? open(at.container).blobs.get(at.name) : requireBlob(at);
    const type = query.get('blocklisttype') ?? 'committed';
    const format = ({ id, bytes }: Block) =>
      element('Block', element('Name', id), element('Size', String(bytes.length)));
    const staged = [...(uncommitted ?? [])].map(([id, bytes]) => ({ id, bytes }));
    const lists = [
      ...(type === 'uncommitted' ? [] : [element('CommittedBlocks', ...(blob?.blocks ?? []).map(format))]),
      ...(type === 'committed' ? [] : [element('UncommittedBlocks', ...staged.map(format))]),
    ];
    return xml(
      element('BlockList', ...lists),
      blob && { ...versionHeaders(blob), 'x-ms-blob-content-length': String(blob.bytes.length) },
    );
  }

  function append(request: StorageRequest, at: BlobAddress): StorageReply {
    const { headers, body } = request;
    const blob = requireBlob(at);
    checkConditions(request, blob);
    if (blob.type !== 'AppendBlob')
      throw new StorageRejection(409, 'InvalidBlobType', 'The blob type is invalid for this operation.');
    const [position, limit] = [
      headers.get('x-ms-blob-condition-appendpos'),
      headers.get('x-ms-blob-condition-maxsize'),
    ];
    if (position !== undefined && Number(position) !== blob.bytes.length)
      throw new StorageRejection(
        412,
        'AppendPositionConditionNotMet',
        'The append position condition specified was not met.',
      );
    if (limit !== undefined && blob.bytes.length + body.length > Number(limit))
      throw new StorageRejection(
        412,
        'MaxBlobSizeConditionNotMet',
        'The max blob size condition specified was not met.',
      );
    if (blob.blocks.length >= MAX_APPEND_BLOCKS)
      throw new StorageRejection(
        409,
        'BlockCountExceedsLimit',
        'The committed block count cannot exceed the maximum limit of 50,000 blocks.',
      );
    checkMd5(headers.get('content-md5'), md5Of(body));
    const blocks = [...blob.blocks, { id: '', bytes: body }];
    const appended = { ...blob, bytes: Buffer.concat([blob.bytes, body]), blocks, ...newVersion() };
    open(at.container).blobs.set(at.name, appended);
    const offset = {
      'x-ms-blob-append-offset': String(blob.bytes.length),
      'x-ms-blob-committed-block-count': String(blocks.length),
    };
    return { status: 201, headers: { ...versionHeaders(appended), ...offset } };
  }

  function change(request: StorageRequest, at: BlobAddress, changed: Partial<Blob>): StorageReply {
    const blob = requireBlob(at);
    checkConditions(request, blob);
    const stored = { ...blob, ...changed, ...newVersion() };
    open(at.container).blobs.set(at.name, stored);
    return { status: 200, headers: versionHeaders(stored) };
  }

  /** The blob at a signed URL of this account, from which a request copies. */
  function sourceOf({ headers }: StorageRequest, url: string): Blob {
    const { pathname, searchParams: query } = new URL(url);
    const [container = '', ...rest] = pathname.split('/').slice(2).map(decodeURIComponent);
    const source = { container, name: rest.join('/') };
    const unverified = (status: number, message: string) =>
      new StorageRejection(status, 'CannotVerifyCopySource', message);
    try {
      blobRights({ authorization: undefined, query }, { container, name: source.name }, options).require('r');
    } catch {
      throw unverified(403, 'Server failed to authenticate the request.');
    }
    const found = containers.get(container)?.blobs.get(source.name);
    if (!found) throw unverified(404, 'The specified blob does not exist.');
    const ifMatch = headers.get('x-ms-source-if-match');
    if (ifMatch !== undefined && ifMatch !== '*' && ifMatch !== found.etag)
      throw unverified(412, 'The condition specified using HTTP conditional header(s) is not met.');
    return found;
  }

  const named = (accounts.get(options.account) ?? []).filter((one) => one.deref());
  accounts.set(options.account, [...named, new WeakRef(sourceOf)]);

  /** Copies a blob of an account of this process while the caller waits. */
  function copy(request: StorageRequest, at: BlobAddress, rights: BlobRights): StorageReply {
    const { headers, origin } = request;
    const url = headers.get('x-ms-copy-source') ?? '';
    if (headers.get('x-ms-requires-sync') !== 'true') throw notImplemented('a copy that is not synchronous');
    const named = accounts.get(new URL(url).pathname.split('/')[1] ?? '') ?? [];
    const sources = url.startsWith(`${origin}/`) ? [sourceOf] : named.flatMap((one) => one.deref() ?? []);
    const found = findSource(sources, request, url);
    checkMd5(headers.get('x-ms-source-content-md5'), md5Of(found.bytes));
    const given = metadataOf(headers);
    const metadata = Object.keys(given).length > 0 ? given : found.metadata;
    const { type, bytes, blocks, headers: content } = found;
    const stored = store(request, at, rights, {
      type,
      bytes,
      blocks,
      headers: content,
      metadata,
      tier: headers.get('x-ms-access-tier') ?? found.tier,
    });
    return {
      status: 202,
      headers: { ...versionHeaders(stored), 'x-ms-copy-id': randomUUID(), 'x-ms-copy-status': 'success' },
    };
  }

  return { handle };
}

interface BlobAddress {
  readonly container: string;
  readonly name: string;
}

function read(request: StorageRequest, blob: Blob, rights: BlobRights): StorageReply {
  const { method, headers } = request;
  checkConditions(request, blob);
  const { bytes, type, createdAt, metadata, blocks } = blob;
  const { 'content-md5': md5, ...content } = blob.headers;
  const common = {
    ...{ ...metadata, ...content, ...versionHeaders(blob) },
    ...{
      'accept-ranges': 'bytes',
      'x-ms-blob-type': type,
      'x-ms-creation-time': formatTime(createdAt),
    },
    ...(type === 'AppendBlob' && { 'x-ms-blob-committed-block-count': String(blocks.length) }),
    ...Object.fromEntries(Object.entries(rights.headers).filter(([, value]) => value !== undefined)),
  };
  const range = /^bytes=(\d+)-(\d*)$/.exec(headers.get('x-ms-range') ?? headers.get('range') ?? '');
  const whole = { 'content-md5': md5, 'content-length': String(bytes.length) };
  if (method === 'HEAD') return { status: 200, headers: { ...common, ...whole, ...tierOf(blob) } };
  if (!range) return { status: 200, headers: { ...common, ...whole, 'x-ms-blob-content-md5': md5 }, body: bytes };
  const start = Number(range[1]);
  const end = Math.min(range[2] ? Number(range[2]) : Number.POSITIVE_INFINITY, bytes.length - 1);
  if (start >= bytes.length)
    throw new StorageRejection(
      416,
      'InvalidRange',
      'The range specified is invalid for the current size of the resource.',
    );
  const body = bytes.subarray(start, end + 1);
  const ofRange = {
    'content-range': `bytes ${start}-${end}/${bytes.length}`,
    'content-length': String(body.length),
    'x-ms-blob-content-md5': md5,
  };
  return { status: 206, headers: { ...common, ...ofRange }, body };
}

/** https://learn.microsoft.com/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations */
function checkConditions({ method, headers }: StorageRequest, blob: Blob | undefined): void {
  const [match, noneMatch] = [headers.get('if-match'), headers.get('if-none-match')];
  const [since, unmodified] = [headers.get('if-modified-since'), headers.get('if-unmodified-since')];
  const isRead = method === 'GET' || method === 'HEAD';
  const notMet = (status: number) =>
    new StorageRejection(
      status,
      'ConditionNotMet',
      'The condition specified using HTTP conditional header(s) is not met.',
    );
  const is = (etag: string) => blob !== undefined && (etag === '*' || etag === blob.etag);
  // Storage compares whole seconds.
  const modifiedAt = blob && Math.floor(blob.modifiedAt / 1_000) * 1_000;
  if (match !== undefined && !is(match)) throw notMet(412);
  if (noneMatch !== undefined && is(noneMatch)) {
    if (isRead) throw notMet(304);
    throw noneMatch === '*'
      ? new StorageRejection(409, 'BlobAlreadyExists', 'The specified blob already exists.')
      : notMet(412);
  }
  if (modifiedAt === undefined) return;
  if (since !== undefined && modifiedAt <= Date.parse(since)) throw notMet(isRead ? 304 : 412);
  if (unmodified !== undefined && modifiedAt > Date.parse(unmodified)) throw notMet(412);
}

function listBlobs(query: URLSearchParams, { blobs }: Container): StorageReply {
  if (query.has('delimiter')) throw notImplemented('a listing with a delimiter');
  const { page, next } = pageOf(blobs, query);
  const withMetadata = query.get('include')?.includes('metadata');
  const listed = page.map(([name, { bytes, type, etag, modifiedAt, headers, metadata, tier }]) => {
    const properties = [
      ...formatVersion(etag, modifiedAt),
      element('Content-Length', String(bytes.length)),
      element('Content-Type', headers['content-type']),
      element('Content-MD5', headers['content-md5']),
      element('BlobType', type),
      ...(tier ? [element('AccessTier', tier)] : []),
    ];
    const pairs = Object.entries(metadata).map(([header, value]) => element(header.slice('x-ms-meta-'.length), value));
    const described = withMetadata ? [element('Metadata', ...pairs)] : [];
    return element('Blob', element('Name', name), element('Properties', ...properties), ...described);
  });
  return xml(
    element(
      'EnumerationResults',
      element('Prefix', query.get('prefix') ?? ''),
      element('Blobs', ...listed),
      element('NextMarker', next),
    ),
  );
}

function pageOf<Value>(map: SortedMap<Value>, query: URLSearchParams) {
  const [prefix, marker] = [query.get('prefix') ?? '', query.get('marker') ?? ''];
  const size = Number(query.get('maxresults') ?? PAGE_SIZE);
  const page: (readonly [string, Value])[] = [];
  for (const entry of map.from(marker > prefix ? marker : prefix)) {
    if (!entry[0].startsWith(prefix)) break;
    if (page.length === size) return { page, next: entry[0] };
    page.push(entry);
  }
  return { page, next: undefined };
}

function formatVersion(etag: string, modifiedAt: number) {
  return [element('Last-Modified', formatTime(modifiedAt)), element('Etag', etag.replaceAll('"', ''))];
}

/** The tier of an account with the usual settings, unless the writer has chosen one. */
function tierOf({ type, tier = 'Hot' }: Blob): Headers {
  return type === 'BlockBlob' ? { 'x-ms-access-tier': tier } : {};
}

function versionHeaders({ etag, modifiedAt }: Blob): Headers {
  return { etag, 'last-modified': formatTime(modifiedAt), 'x-ms-request-server-encrypted': 'true' };
}

/** The headers that a blob gets by a request. A blob without a type gets the general one. */
function contentHeaders(headers: StorageRequest['headers']): Headers {
  const named = CONTENT_HEADERS.map((name) => [`content-${name}`, headers.get(`x-ms-blob-content-${name}`)] as const);
  return {
    ...Object.fromEntries(named.filter(([, value]) => value)),
    'content-type': headers.get('x-ms-blob-content-type') || 'application/octet-stream',
    'cache-control': headers.get('x-ms-blob-cache-control') || undefined,
    'content-md5': headers.get('x-ms-blob-content-md5') || undefined,
  };
}

function md5Of(bytes: Buffer): string {
  return createHash('md5').update(bytes).digest('base64');
}

function checkMd5(given: string | undefined, md5: string): void {
  if (given !== undefined && given !== md5)
    throw new StorageRejection(
      400,
      'Md5Mismatch',
      'The MD5 value specified in the request did not match with the MD5 value calculated by the server.',
    );
}

function formatTime(time: number): string {
  return new Date(time).toUTCString();
}

function xml(root: ReturnType<typeof element>, headers: Headers = {}): StorageReply {
  return { status: 200, headers: { ...headers, 'content-type': 'application/xml' }, body: toDocument(root) };
}

function notImplemented(what: string): StorageRejection {
  return new StorageRejection(501, 'NotImplemented', `The stand-in does not implement ${what}.`);
}
