import { buffer } from 'node:stream/consumers';
import {
  type AppendBlobClient,
  type BlobClient,
  BlobSASPermissions,
  type ContainerClient,
  generateBlobSASQueryParameters,
  SASProtocol,
  type StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { type Account, type Case, compareWithAzurite, outcome } from './contract.ts';
import { BLOB_DIFFERENCES } from './differences.ts';

const TEXT = 'Hello, \u00e9\u{1f600}!';
const HOUR_MS = 3_600_000;

async function put(container: ContainerClient, name: string, text = TEXT, options = {}) {
  const bytes = Buffer.from(text);
  return container.getBlockBlobClient(name).upload(bytes, bytes.length, options);
}

/** The content and headers of a blob. */
async function get(blob: BlobClient, offset?: number, count?: number) {
  const found = await blob.download(offset, count);
  const { contentLength, contentRange, contentType, contentDisposition, cacheControl, contentMD5, metadata, blobType } =
    found;
  const bytes = found.readableStreamBody && (await buffer(found.readableStreamBody));
  return {
    ...{ bytes, contentLength, contentRange, contentType, contentDisposition },
    ...{ cacheControl, contentMD5, metadata, blobType },
  };
}

async function names(container: ContainerClient, options = {}) {
  const found = [];
  for await (const { name } of container.listBlobsFlat(options)) found.push(name);
  return found;
}

interface SignOptions {
  /** Milliseconds from now. */
  readonly from?: number;
  readonly to?: number;
  readonly contentType?: string;
  readonly contentDisposition?: string;
  readonly cacheControl?: string;
}

/** The URL of a blob with a signature. */
function sign(
  { blobs }: Account,
  client: BlobClient,
  permissions: string,
  { from = -HOUR_MS, to = HOUR_MS, ...headers }: SignOptions = {},
) {
  const values = {
    ...{ containerName: client.containerName, blobName: client.name, protocol: SASProtocol.HttpsAndHttp },
    ...{
      permissions: BlobSASPermissions.parse(permissions),
      startsOn: new Date(Date.now() + from),
      expiresOn: new Date(Date.now() + to),
    },
    ...headers,
  };
  return `${client.url}?${generateBlobSASQueryParameters(values, blobs.credential as StorageSharedKeyCredential)}`;
}

const cases: Record<string, Case> = {
  async 'creates, lists and deletes containers'({ blobs, createContainer }) {
    for (const name of ['list-b', 'list-a', 'other']) await createContainer(name);
    const found = [];
    for await (const { name } of blobs.listContainers({ prefix: 'list-' })) found.push(name);
    await blobs.deleteContainer('list-a');
    const container = blobs.getContainerClient('list-a');
    return [
      found,
      await outcome(blobs.createContainer('list-b')),
      await outcome(blobs.deleteContainer('list-a')),
      await outcome(put(container, 'x')),
      await outcome(container.getBlobClient('x').download()),
      await outcome(container.listBlobsFlat().next()),
      await container.exists(),
      (await container.createIfNotExists()).succeeded,
    ];
  },
  async 'rejects a container name'({ blobs }) {
    return Promise.all(
      ['ab', 'A-queue', 'a--b', '-ab', 'a_b', 'a'.repeat(64)].map((name) => outcome(blobs.createContainer(name))),
    );
  },
  async 'accepts rules for pages of other origins'({ tables, blobs }) {
    const rule = {
      allowedOrigins: '*',
      allowedMethods: 'GET',
      allowedHeaders: '*',
      exposedHeaders: '*',
      maxAgeInSeconds: 1,
    };
    return Promise.all([tables, blobs].map((service) => outcome(service.setProperties({ cors: [rule] }))));
  },
  async 'writes and reads a blob'({ createContainer }) {
    const container = await createContainer('writing');
    const written = await put(container, 'a/b c.txt', TEXT, {
      metadata: { one: '1', two: 'second value' },
      blobHTTPHeaders: {
        blobContentType: 'text/plain',
        blobContentDisposition: 'attachment; filename="x"',
        blobCacheControl: 'no-store',
      },
    });
    const blob = container.getBlobClient('a/b c.txt');
    const { contentLength, contentType, contentMD5, metadata } = await blob.getProperties();
    return [written, await get(blob), contentLength, contentType, contentMD5, metadata, await blob.exists()];
  },
  async 'overwrites a blob'({ createContainer }) {
    const container = await createContainer('overwriting');
    await put(container, 'x', TEXT, { metadata: { a: '1' }, blobHTTPHeaders: { blobContentType: 'text/plain' } });
    await put(container, 'x', 'new');
    return get(container.getBlobClient('x'));
  },
  async 'keeps an empty blob'({ createContainer }) {
    const container = await createContainer('empty');
    await put(container, 'x', '');
    const blob = container.getBlobClient('x');
    return [await get(blob), await outcome(blob.download(0, 10))];
  },
  async 'reads a range'({ createContainer }) {
    const container = await createContainer('ranges');
    await put(container, 'x', '0123456789');
    const blob = container.getBlobClient('x');
    return [await get(blob, 0, 4), await get(blob, 4), await get(blob, 8, 100), await get(blob, 0, 10)];
  },
  async 'rejects a range behind the end'({ createContainer }) {
    const container = await createContainer('behind');
    await put(container, 'x', '0123456789');
    return outcome(container.getBlobClient('x').download(10, 1));
  },
  async 'reports a blob that does not exist'({ createContainer }) {
    const container = await createContainer('absent');
    const blob = container.getBlockBlobClient('x');
    return [
      await outcome(blob.download()),
      await outcome(blob.getProperties()),
      await outcome(blob.delete()),
      await outcome(blob.setMetadata({ a: '1' })),
      await outcome(blob.setHTTPHeaders({})),
      await outcome(blob.getBlockList('committed')),
      await outcome(container.getAppendBlobClient('x').appendBlock('x', 1)),
      (await blob.deleteIfExists()).succeeded,
      await blob.exists(),
    ];
  },
  async 'reads under conditions'({ createContainer }) {
    const container = await createContainer('readifs');
    const { etag = '' } = await put(container, 'x');
    const blob = container.getBlobClient('x');
    const read = (conditions: object) => outcome(blob.download(0, undefined, { conditions }));
    const [past, future] = [new Date(Date.now() - HOUR_MS), new Date(Date.now() + HOUR_MS)];
    return [
      await read({ ifMatch: etag }),
      await read({ ifMatch: '"0x0"' }),
      await read({ ifNoneMatch: etag }),
      await read({ ifNoneMatch: '"0x0"' }),
      await read({ ifModifiedSince: past }),
      await read({ ifModifiedSince: future }),
      await read({ ifUnmodifiedSince: past }),
      await read({ ifUnmodifiedSince: future }),
    ];
  },
  async 'writes under conditions'({ createContainer }) {
    const container = await createContainer('writeifs');
    const write = (conditions: object) => outcome(put(container, 'x', 'x', { conditions }));
    const seen = [
      await write({ ifMatch: '"0x0"' }),
      await write({ ifMatch: '*' }),
      await write({ ifNoneMatch: '*' }),
      await write({ ifNoneMatch: '*' }),
    ];
    const blob = container.getBlockBlobClient('x');
    const { etag = '' } = await blob.getProperties();
    seen.push(await write({ ifMatch: '"0x0"' }), await write({ ifNoneMatch: etag }), await write({ ifMatch: etag }));
    const change = { conditions: { ifMatch: etag } };
    seen.push(
      await outcome(blob.setMetadata({ a: '1' }, change)),
      await outcome(blob.setHTTPHeaders({}, change)),
      await outcome(blob.delete(change)),
    );
    const now = { conditions: { ifMatch: (await blob.getProperties()).etag ?? '' } };
    return [seen, await outcome(blob.delete(now)), await outcome(blob.delete(now))];
  },
  async 'checks a hash'({ createContainer }) {
    const container = await createContainer('hashes');
    const md5 = new Uint8Array(16);
    return [
      await outcome(container.getBlockBlobClient('x').upload('x', 1, { blobHTTPHeaders: { blobContentMD5: md5 } })),
      await outcome(container.getBlockBlobClient('y').stageBlock('AAAA', 'x', 1, { transactionalContentMD5: md5 })),
    ];
  },
  async 'replaces headers and metadata'({ createContainer }) {
    const container = await createContainer('headers');
    await put(container, 'x', TEXT, {
      metadata: { a: '1' },
      blobHTTPHeaders: { blobContentType: 'text/plain', blobCacheControl: 'no-store' },
    });
    const blob = container.getBlobClient('x');
    await blob.setMetadata({ b: '2' });
    const first = await get(blob);
    const blobContentMD5 = first.contentMD5 ?? new Uint8Array();
    await blob.setHTTPHeaders({ blobContentType: 'image/png', blobContentDisposition: 'inline', blobContentMD5 });
    return [first, await get(blob)];
  },
  async 'deletes a hash that is not sent with the other headers'({ createContainer }) {
    const container = await createContainer('unhashed');
    await put(container, 'x');
    const blob = container.getBlobClient('x');
    await blob.setHTTPHeaders({ blobContentType: 'image/png' });
    return (await blob.getProperties()).contentMD5;
  },
  async 'lists blobs'({ createContainer }) {
    const container = await createContainer('listing');
    for (const name of ['b/2', 'a', 'b/1', 'c', 'b&<>', 'B'])
      await put(container, name, name, { metadata: { name: 'x' }, tier: 'Cool' });
    const items = [];
    for await (const { name, properties, metadata } of container.listBlobsFlat({
      prefix: 'b/',
      includeMetadata: true,
    })) {
      const { contentLength, contentType, blobType, accessTier, lastModified, etag, contentMD5 } = properties;
      items.push({
        name,
        metadata,
        contentLength,
        contentType,
        blobType,
        accessTier,
        lastModified,
        etag: etag.replaceAll('"', ''),
        contentMD5,
      });
    }
    const pages = [];
    for await (const { segment } of container.listBlobsFlat().byPage({ maxPageSize: 4 }))
      pages.push(segment.blobItems.map(({ name }) => name));
    return [items, pages];
  },
  async 'appends blocks'({ createContainer }) {
    const container = await createContainer('appending');
    const blob: AppendBlobClient = container.getAppendBlobClient('x');
    const create = { conditions: { ifNoneMatch: '*' }, metadata: { a: '1' } };
    const seen: unknown[] = [await outcome(blob.create(create)), await outcome(blob.create(create))];
    const { blobAppendOffset, blobCommittedBlockCount } = await blob.appendBlock('one\n', 4, {
      conditions: { appendPosition: 0 },
    });
    seen.push(blobAppendOffset, blobCommittedBlockCount);
    seen.push(await outcome(blob.appendBlock('two\n', 4, { conditions: { appendPosition: 0 } })));
    seen.push(await outcome(blob.appendBlock('two\n', 4, { conditions: { maxSize: 6 } })));
    seen.push(
      await outcome(blob.appendBlock('two\n', 4, { conditions: { appendPosition: 4 } })),
      (await get(blob)).bytes,
    );
    await put(container, 'block');
    return [seen, await outcome(container.getAppendBlobClient('block').appendBlock('x', 1))];
  },
  async 'commits blocks'({ createContainer }) {
    const container = await createContainer('blocks');
    const blob = container.getBlockBlobClient('x');
    const [a, b, c] = ['YQ==', 'Yg==', 'Yw=='];
    for (const [id, text] of [
      [a, 'one'],
      [b, 'two'],
      [c, 'three'],
    ] as const)
      await blob.stageBlock(id, text, text.length);
    const before = [await outcome(blob.download()), await names(container)];
    const { etag } = await blob.commitBlockList([b, a], {
      metadata: { a: '1' },
      tier: 'Cool',
      blobHTTPHeaders: { blobContentType: 'text/plain' },
      conditions: { ifNoneMatch: '*' },
    });
    const first = [
      { ...(await get(blob)), contentMD5: undefined },
      (await blob.getProperties()).accessTier,
      (await blob.getBlockList('all')).committedBlocks,
      (await blob.getBlockList('all')).uncommittedBlocks,
    ];
    await blob.stageBlock(c, 'four', 4);
    const seen = [
      await outcome(blob.commitBlockList([a, c], { conditions: { ifNoneMatch: '*' } })),
      await outcome(blob.commitBlockList([a, 'ZA=='])),
      await outcome(blob.commitBlockList([a, c, b], { conditions: { ifMatch: etag ?? '' } })),
      await outcome(blob.commitBlockList([a, c], { conditions: { ifMatch: etag ?? '' } })),
    ];
    return [before, first, seen, (await get(blob)).bytes];
  },
  async 'lists blocks of a blob that is not committed'({ createContainer }) {
    const container = await createContainer('uncommitted');
    const blob = container.getBlockBlobClient('x');
    await blob.stageBlock('YQ==', 'one', 3);
    const { uncommittedBlocks = [], committedBlocks, etag } = await blob.getBlockList('all');
    return [uncommittedBlocks.map(({ name, size }) => `${name} ${size}`), committedBlocks, etag];
  },
  async 'has no hash of a blob that was written in blocks'({ createContainer }) {
    const container = await createContainer('inblocks');
    const blocks = container.getBlockBlobClient('blocks');
    await blocks.stageBlock('YQ==', 'one', 3);
    await blocks.commitBlockList(['YQ==']);
    const append = container.getAppendBlobClient('append');
    await append.create();
    await append.appendBlock('one', 3);
    return [(await get(blocks)).contentMD5, (await get(append)).contentMD5];
  },
  async 'copies a blob of the account'(account) {
    const container = await account.createContainer('copying');
    const { etag = '' } = await put(container, 'from', TEXT, {
      metadata: { a: '1' },
      blobHTTPHeaders: { blobContentType: 'text/plain' },
    });
    const source = container.getBlobClient('from');
    const copy = (to: string, options = {}, url = sign(account, source, 'r')) =>
      outcome(container.getBlobClient(to).syncCopyFromURL(url, options));
    const md5 = (await source.getProperties()).contentMD5 ?? new Uint8Array();
    return [
      await copy('to', { metadata: { b: '2' } }),
      await get(container.getBlobClient('to')),
      await copy('same'),
      (await get(container.getBlobClient('same'))).metadata,
      await copy('ifs', { sourceConditions: { ifMatch: etag } }),
      await copy('hash', { sourceContentMD5: md5 }),
    ];
  },
  async 'reports a source that does not exist or has no signature'(account) {
    const container = await account.createContainer('nosource');
    await put(container, 'from');
    const copy = (url: string) => outcome(container.getBlobClient('to').syncCopyFromURL(url));
    return [
      await copy(sign(account, container.getBlobClient('absent'), 'r')),
      await copy(container.getBlobClient('from').url),
    ];
  },
  async 'copies only the expected blob'(account) {
    const container = await account.createContainer('copyifs');
    await put(container, 'from');
    const source = sign(account, container.getBlobClient('from'), 'r');
    const to = container.getBlobClient('to');
    return [
      await outcome(to.syncCopyFromURL(source, { sourceConditions: { ifMatch: '"0x0"' } })),
      await outcome(to.syncCopyFromURL(source, { sourceContentMD5: new Uint8Array(16) })),
    ];
  },
  async 'accepts a signature'(account) {
    const container = await account.createContainer('signed');
    await put(container, 'x', TEXT, { blobHTTPHeaders: { blobContentType: 'text/plain' } });
    const headers = { contentType: 'image/png', contentDisposition: 'attachment', cacheControl: 'private' };
    const send = async (method: string, url: string, more = {}) => {
      const { status, headers } = await account.send(method, url, {
        headers: { 'x-ms-blob-type': 'BlockBlob', ...more },
        ...(method === 'PUT' && { body: 'new' }),
      });
      return [
        status,
        headers.get('x-ms-error-code'),
        headers.get('content-type')?.replace('application/xml', ''),
        headers.get('content-disposition'),
        headers.get('cache-control'),
      ];
    };
    const [x, y] = [container.getBlobClient('x'), container.getBlobClient('y')];
    return [
      await send('GET', sign(account, x, 'r')),
      await send('GET', sign(account, x, 'r', headers)),
      await send('PUT', sign(account, y, 'c')),
      (await get(y)).bytes,
    ];
  },
  async 'rejects a signature'(account) {
    const container = await account.createContainer('rejected');
    await put(container, 'x');
    await put(container, 'y');
    const [x, y] = [container.getBlobClient('x'), container.getBlobClient('y')];
    const send = async (method: string, url: string) => {
      const { status, headers } = await account.send(method, url, {
        headers: { 'x-ms-blob-type': 'BlockBlob' },
        ...(method === 'PUT' && { body: 'new' }),
      });
      return `${status} ${headers.get('x-ms-error-code')}`;
    };
    return [
      await send('GET', sign(account, x, 'c')),
      await send('PUT', sign(account, x, 'r')),
      await send('DELETE', sign(account, x, 'rcw')),
      await send('GET', sign(account, x, 'r', { to: -1_000 })),
      await send('GET', sign(account, x, 'r', { from: HOUR_MS / 2 })),
      await send('GET', sign(account, x, 'r').replace('/x?', '/y?')),
      await send('GET', `${y.url}?${new URL(sign(account, x, 'r')).search}x`),
    ];
  },
  async 'writes blocks with the permission to write alone'(account) {
    const container = await account.createContainer('signedblocks');
    const blob = container.getBlobClient('x');
    const put = async (permissions: string, query: string, body: string) => {
      const { status, headers } = await account.send('PUT', `${sign(account, blob, permissions)}&${query}`, { body });
      return `${status} ${headers.get('x-ms-error-code')}`;
    };
    const list = '<?xml version="1.0" encoding="utf-8"?><BlockList><Latest>00000000</Latest></BlockList>';
    return [
      await put('c', 'comp=block&blockid=00000000', 'one'),
      await put('w', 'comp=block&blockid=00000000', 'one'),
      await put('c', 'comp=blocklist', list),
      await put('w', 'comp=blocklist', list),
      (await get(blob)).bytes,
    ];
  },
  async 'does not overwrite with the permission to create'(account) {
    const container = await account.createContainer('createonly');
    await put(container, 'x');
    const { status, headers } = await account.send('PUT', sign(account, container.getBlobClient('x'), 'c'), {
      headers: { 'x-ms-blob-type': 'BlockBlob' },
      body: 'new',
    });
    return `${status} ${headers.get('x-ms-error-code')}`;
  },
};

compareWithAzurite(import.meta.url, cases, BLOB_DIFFERENCES);
