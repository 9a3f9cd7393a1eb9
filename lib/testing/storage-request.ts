import { buffer } from 'node:stream/consumers';
import { createHttpHeaders, type HttpHeaders, type PipelineRequest } from '@azure/core-rest-pipeline';

/** A request to a service of the account, without the address of the service. */
export interface StorageRequest {
  readonly method: string;
  /** After the account, decoded. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: HttpHeaders;
  readonly body: Buffer;
  /** The origin of the account, for links in responses. */
  readonly origin: string;
}

export interface StorageReply {
  readonly status: number;
  /** A header that is undefined is left out. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string | Buffer;
}

/** Storage rejects the request. */
export class StorageRejection extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message = code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Milliseconds since 1970. */
export type Clock = () => number;

export async function toStorageRequest(
  { method, url, headers, body }: PipelineRequest,
  account: string,
): Promise<StorageRequest> {
  const { origin, pathname, searchParams: query } = new URL(url);
  const [, first = '', ...rest] = pathname.split('/');
  if (decodeURIComponent(first) !== account) throw new StorageRejection(404, 'ResourceNotFound');
  const path = decodeURIComponent(rest.join('/'));
  return { method, path, query, headers, body: await toBuffer(body), origin: `${origin}/${account}` };
}

async function toBuffer(body: PipelineRequest['body']): Promise<Buffer> {
  const given = typeof body === 'function' ? body() : body;
  if (given === undefined || given === null) return Buffer.alloc(0);
  if (typeof given === 'string') return Buffer.from(given);
  // A copy: the sender may use its memory again.
  if (ArrayBuffer.isView(given)) return Buffer.from(Buffer.from(given.buffer, given.byteOffset, given.byteLength));
  if (given instanceof ArrayBuffer) return Buffer.from(given.slice());
  if (given instanceof Blob) return Buffer.from(await given.arrayBuffer());
  return buffer(given as NodeJS.ReadableStream);
}

export function toHttpHeaders(headers: StorageReply['headers'] = {}): HttpHeaders {
  const defined = Object.entries(headers).filter((header): header is [string, string] => header[1] !== undefined);
  return createHttpHeaders(Object.fromEntries(defined));
}

/** The headers with metadata, as received and as a response repeats them. */
export function metadataOf(headers: HttpHeaders): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name.startsWith('x-ms-meta-')));
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '\r': '&#xD;' };

/** Formats an XML element. Attributes are not needed by any response but a listing. */
export function element(name: string, ...content: readonly (string | Xml | undefined)[]): Xml {
  const inner = content.map((part) => (part instanceof Xml ? part.text : escapeXml(part ?? ''))).join('');
  return new Xml(`<${name}>${inner}</${name}>`);
}

class Xml {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export function toDocument(root: Xml): string {
  return `<?xml version="1.0" encoding="utf-8"?>${root.text}`;
}

function escapeXml(text: string): string {
  return text.replace(/[&<>\r]/g, (character) => ESCAPES[character] ?? character);
}

/** Returns the text of the first element of this name; undefined if there is none. */
export function textOf(xml: string, name: string): string | undefined {
  const [, text] = new RegExp(`<${name}(?:\\s[^>]*)?>([\\s\\S]*?)</${name}>`).exec(xml) ?? [];
  return text === undefined ? undefined : unescapeXml(text);
}

const UNESCAPED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

export function unescapeXml(text: string): string {
  return text.replace(/&(?:#x([\da-f]+)|#(\d+)|(\w+));/gi, (entity, hex: string, decimal: string, name: string) => {
    if (name) return UNESCAPED[name] ?? entity;
    return String.fromCodePoint(hex ? Number.parseInt(hex, 16) : Number(decimal));
  });
}
