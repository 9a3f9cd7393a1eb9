import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, vi } from 'vitest';
import { type Call, type ClientOptions, createClient } from '../../../lib/client/index.ts';
import { model } from '../../fixtures/model.ts';
import { httpDoor } from '../../kit/http.ts';

export const ROOT = 'https://rowkey.example/api';

export interface Sent {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** A response, or the error of a connection. */
type Scripted = Response | Error | ((sent: Sent) => Response | Error | Promise<Response>);

export function json(body: unknown, headers: Record<string, string> = {}, status = 200): Response {
  return new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json', ...headers } });
}

export function problem(status: number, code: string, headers: Record<string, string> = {}): Response {
  const body = { type: `/api/problems#${code}`, title: 'A title', status, detail: `It is ${code}.`, code };
  return json(body, { ...headers, 'content-type': 'application/problem+json' }, status);
}

/** A client of the fixtures' model whose requests get these responses, one after the other. `/model` is always answered. */
export function clientOf(script: readonly Scripted[], options: Partial<ClientOptions<typeof model>> = {}) {
  const rest = [...script];
  const sent: Sent[] = [];
  const calls: Call[] = [];
  const fetch = async (url: unknown, init: RequestInit = {}): Promise<Response> => {
    init.signal?.throwIfAborted();
    if (String(url) === `${ROOT}/model`) return json(httpDoor.describeModel(model));
    const { method = 'GET', headers, body } = init;
    const isText = typeof body === 'string';
    const one = {
      method,
      url: String(url),
      headers: { ...(headers as object) },
      body: isText ? JSON.parse(body) : body,
    };
    sent.push(one);
    const next = rest.shift();
    if (next === undefined) throw new Error(`Nothing is scripted for ${method} ${url}.`);
    const answer = typeof next === 'function' ? await next(one) : next;
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const client = createClient<typeof model>({
    url: `${ROOT}/`,
    fetch: fetch as typeof globalThis.fetch,
    onCall: (call) => calls.push(call),
    ...options,
  });
  return { client, sent, calls, left: () => rest.length };
}

export const KEY = { department: 'Sales', employeeId: '000123' };
export const PERSON = { ...KEY, email: 'a@b.example', firstName: 'A', lastName: 'B' };
const { department: _, employeeId: __, ...fields } = PERSON;
export const FIELDS = fields;
export const found = (etag = '"1"', over: object = {}) => json({ ...PERSON, ...over }, { etag });
export const lost = () => new TypeError('fetch failed');

/** Pauses end when the test says so. */
export function usePausedTime(): void {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });
}

/** Lets all pauses end. */
export async function through<Result>(work: Promise<Result>): Promise<Result> {
  let isSettled = false;
  const settled = work.finally(() => {
    isSettled = true;
  });
  settled.catch(() => undefined);
  // A module that is loaded at its first use sets its timers later.
  for (; !isSettled; await turn()) await vi.runAllTimersAsync();
  return settled;
}
