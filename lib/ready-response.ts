import { HttpResponse, type HttpResponseInit } from '@azure/functions';
import type { Handler } from './http/handler.ts';

/** `Headers` would reject or change some other values, and the library reports these. */
const PLAIN_VALUE = /^[\t\x20-\x7e]*$/;
const encoder = new TextEncoder();

/**
 * A response whose parts the library reads as they are. From an `HttpResponseInit`, the library creates a `Response` with
 * `Headers` and a stream, and reads all of it back, which takes a tenth of the CPU of a GET by key.
 */
class ReadyResponse implements Pick<HttpResponse, 'status' | 'headers' | 'body' | 'cookies' | 'arrayBuffer'> {
  readonly status: number;
  readonly headers: Headers;
  readonly cookies = [];
  readonly enableContentNegotiation = false;
  readonly #text: string | undefined;

  constructor(status: number, headers: Readonly<Record<string, string>>, text: string | undefined) {
    this.status = status;
    // The library calls `entries` and `get`, with names in lower case.
    this.headers = new Map(Object.entries(headers)) as unknown as Headers;
    this.#text = text;
  }

  /** For an app with `enableHttpStream`, and for another copy of the library. */
  get body() {
    return new Response(this.#text).body as HttpResponse['body'];
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    return encoder.encode(this.#text).buffer;
  }
}
// Not `extends`, because the constructor of `HttpResponse` always creates a `Response`.
Object.setPrototypeOf(ReadyResponse.prototype, HttpResponse.prototype);

/** Returns the response in the form that costs the library least. */
export function toReadyResponse(response: HttpResponseInit): HttpResponseInit {
  const { status = 200, headers = {}, body, ...others } = response;
  const isText = body === undefined || typeof body === 'string';
  if (!isText || Object.keys(others).length > 0 || !isPlain(headers)) return response;
  return new ReadyResponse(status, headers, body) as unknown as HttpResponseInit;
}

function isPlain(headers: object): headers is Readonly<Record<string, string>> {
  return Object.values(headers).every((value) => typeof value === 'string' && PLAIN_VALUE.test(value));
}

export function withReadyResponse(handler: Handler): Handler {
  return async (request, invocation) => toReadyResponse(await handler(request, invocation));
}
