import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { toContentEtag } from '../base/content-etag.ts';
import { loadOnce } from '../base/once.ts';
import { isNotModified } from './bind.ts';
import type { RequestContext, RouteResult } from './route.ts';

/** A deployment changes what follows from the model, and a client reads it once per start. */
const MAX_AGE_S = 300;

type Encode = (bytes: Uint8Array) => Promise<Uint8Array>;

/** The smallest first. A higher quality of Brotli takes seconds for the description of a large model. */
const ENCODINGS: Readonly<Record<string, Encode>> = {
  br: (bytes) => promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  gzip: (bytes) => promisify(gzip)(bytes),
};

interface BuiltOnceOptions {
  /** Builds the document for the root of an instance, or one part of the document. */
  readonly build: (root: string, part: string) => unknown;
  /** The part that a request asks for; the whole is the part with the empty name. Accepts known parts only, as each is kept. */
  readonly readPart?: (context: RequestContext) => string;
}

/**
 * Creates the handler of a public document that follows from the model alone: built and compressed at its first request, and
 * kept with its ETag. The platform compresses no response.
 */
export function serveBuiltOnce({ build, readPart = () => '' }: BuiltOnceOptions) {
  const representations = new Map<string, () => Promise<Representation>>();
  const keep = (key: readonly string[], create: () => Promise<Uint8Array>) => {
    const id = JSON.stringify(key);
    const read = representations.get(id) ?? loadOnce(async () => toRepresentation(await create()));
    representations.set(id, read);
    return read();
  };
  return async (context: RequestContext): Promise<RouteResult> => {
    const { root } = context;
    const part = readPart(context);
    const plain = () =>
      keep([root, part], async () => new TextEncoder().encode(JSON.stringify(await build(root, part))));
    const accepted = parseEncodings(context.headers.get('accept-encoding'));
    const [encoding, encode] = Object.entries(ENCODINGS).find(([name]) => accepted.includes(name)) ?? [];
    const { bytes, etag } = await (encoding && encode
      ? keep([root, part, encoding], async () => encode((await plain()).bytes))
      : plain());
    const headers = { etag, 'cache-control': `public, max-age=${MAX_AGE_S}`, vary: 'Accept-Encoding, Origin' };
    if (isNotModified(context, etag)) return { status: 304, headers };
    const coding = encoding ? { 'content-encoding': encoding } : {};
    return { status: 200, headers: { ...headers, 'content-type': 'application/json', ...coding }, bytes };
  };
}

interface Representation {
  readonly bytes: Uint8Array;
  readonly etag: string;
}

function toRepresentation(bytes: Uint8Array): Representation {
  return { bytes, etag: toContentEtag(bytes) };
}

/** The encodings of an `Accept-Encoding` header, without those of quality 0. */
export function parseEncodings(header: string | null | undefined): string[] {
  const offers = (header ?? '').split(',').map((offer) =>
    offer
      .trim()
      .toLowerCase()
      .split(/\s*;\s*/),
  );
  return offers.filter(([, quality = 'q=1']) => Number(quality.replace(/^q=/, '')) > 0).map(([name = '']) => name);
}
