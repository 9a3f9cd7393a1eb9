import { HttpResponse, type HttpResponseInit } from '@azure/functions';

const encoder = new TextEncoder();

/**
 * A response that keeps its text. From an `HttpResponseInit` with a text, the library creates a stream and reads it back, which
 * takes several percent of the CPU of a GET by key.
 */
class TextResponse extends HttpResponse {
  override readonly arrayBuffer: HttpResponse['arrayBuffer'];
  override readonly text: HttpResponse['text'];
  override readonly json: HttpResponse['json'];
  override readonly blob: HttpResponse['blob'];
  override readonly clone: HttpResponse['clone'];
  readonly #text: string;

  constructor(init: HttpResponseInit, text: string) {
    super(init);
    this.#text = text;
    this.arrayBuffer = async () => encoder.encode(text).buffer;
    this.text = async () => text;
    this.json = async () => JSON.parse(text);
    this.blob = async () => new Blob([text]);
    this.clone = () => new TextResponse({ ...init, headers: this.headers }, text);
  }

  // @ts-expect-error The library declares a property and has an accessor. Read only if an app has `enableHttpStream`.
  override get body() {
    return new Response(this.#text).body as HttpResponse['body'];
  }
}

/** Returns the response in the form that costs the library least. */
export function toTextResponse(response: HttpResponseInit): HttpResponseInit {
  const { body, ...init } = response;
  return typeof body === 'string' ? new TextResponse(init, body) : response;
}
