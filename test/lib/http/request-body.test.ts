import { describe, expect, test } from 'vitest';
import { parseJson, readBytes, requireJson } from '../../../lib/http/request-body.ts';
import { testRequest } from './request.ts';

const post = (body: string | Uint8Array | undefined, headers: Record<string, string> = {}) =>
  testRequest({ method: 'POST', headers, ...(body === undefined ? {} : { body }) });

describe('a body', () => {
  test('is read when it is as large as allowed', async () => {
    const bytes = await readBytes(post('12345', { 'content-length': '5' }), 5);
    expect(new TextDecoder().decode(bytes)).toBe('12345');
  });

  test.each([
    ['declares more bytes than allowed', '1', '6'],
    ['has more bytes than allowed', '123456', '6'],
    ['has more bytes than allowed and declares fewer', '123456', '1'],
    ['has more bytes than allowed and declares no number', '123456', 'x'],
    ['has fewer characters than bytes allowed, and more bytes', 'üüü', '6'],
  ])('is rejected when it %s', async (_, body, length) => {
    await expect(readBytes(post(body, { 'content-length': length }), 5)).rejects.toMatchObject({
      code: 'too-large',
      accepted: 'at most 5 bytes',
    });
  });

  test('is at most 1 MiB by default', async () => {
    const body = new Uint8Array(1_048_576);
    expect((await readBytes(post(body, { 'content-length': '1048576' }))).byteLength).toBe(1_048_576);
    await expect(readBytes(post(undefined, { 'content-length': '1048577' }))).rejects.toMatchObject({
      code: 'too-large',
    });
  });

  test('is rejected when it arrives empty without a declared length, as a chunked body does', async () => {
    await expect(readBytes(post(undefined))).rejects.toMatchObject({
      code: 'length-required',
      message: 'The request has no body, or a chunked body, which is not supported.',
    });
    expect((await readBytes(post(undefined, { 'content-length': '0' }))).byteLength).toBe(0);
  });
});

describe('the media type of a JSON body', () => {
  test.each([
    'application/json',
    'Application/JSON; charset=utf-8',
    'application/merge-patch+json',
    'application/vnd.x-1.y+json;v=1',
    '',
  ])('is accepted: %j', (type) => {
    expect(() => requireJson(post('{}', { 'content-type': type }))).not.toThrow();
  });

  test('may be missing', () => {
    expect(() => requireJson(testRequest({ method: 'POST' }))).not.toThrow();
  });

  test.each([
    'text/plain',
    'text/json',
    'application/jsonx',
    'application/x/json',
    'application/',
    `a${'x'.repeat(500)}`,
  ])('is rejected: %j', (type) => {
    const error = expect.objectContaining({
      code: 'unsupported-media-type',
      message: `Unsupported media type for the body: ${type.slice(0, 100)}.`,
    });
    expect(() => requireJson(post('{}', { 'content-type': type }))).toThrow(error);
  });
});

describe('JSON', () => {
  const bytes = (text: string) => new TextEncoder().encode(text);

  test('is parsed from UTF-8', () => {
    expect(parseJson(bytes('{"name":"Ünïted 😀"}'))).toEqual({ name: 'Ünïted 😀' });
  });

  test('sets no prototype', () => {
    expect(Object.getPrototypeOf(parseJson(bytes('{"__proto__":{"isAdmin":true}}')))).toBe(Object.prototype);
  });

  test.each<[string, Uint8Array]>([
    ['is empty', bytes('')],
    ['is cut off', bytes('{"a":')],
    ['has a trailing comma', bytes('{"a":1,}')],
    ['is a number that JSON does not have', bytes('NaN')],
    ['is UTF-16', new Uint8Array([0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00])],
    ['has an encoded lone surrogate', new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22])],
    ['has an overlong encoding', new Uint8Array([0x22, 0xc0, 0xaf, 0x22])],
  ])('is rejected when it %s', (_, body) => {
    expect(() => parseJson(body)).toThrow(expect.objectContaining({ code: 'invalid-input' }));
  });
});
