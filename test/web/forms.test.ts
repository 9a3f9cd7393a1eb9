// @module-tag long

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { toModel } from '../../web/src/api/model.ts';
import {
  EMPTY_TEXT,
  findInput,
  findProblems,
  formFields,
  parseField,
  sayRequired,
  toFieldText,
  toPatch,
  toTexts,
  toUndo,
  toValues,
} from '../../web/src/forms/fields.ts';
import { findProblem } from '../../web/src/forms/find-problem.ts';
import { model as declared } from '../fixtures/model.ts';
import { httpDoor } from '../kit/http.ts';
import type { Internal } from '../kit/internal.ts';

// The types of the console are those of the route: this assignment does not compile otherwise.
const described: Internal['ModelDescription'] = httpDoor.describeModel(declared);
const model = toModel(described);
const HR = { roles: ['hr'] };

function entity(name: string) {
  const found = model.entities.get(name);
  if (!found) throw new Error(name);
  return found;
}
const fieldOf = (name: string, field: string, user = HR) => {
  const found = formFields(entity(name), user, 'create').find((one) => one.name === field);
  if (!found) throw new Error(field);
  return found;
};

describe('the fields of a form', () => {
  test('leave out what cannot be written: kept, derived and restricted fields, and the key of a change', () => {
    const names = (name: string, purpose: 'create' | 'change', roles = ['hr']) =>
      formFields(entity(name), { roles }, purpose).map((field) => field.name);
    expect(names('departments', 'create')).toEqual(['department', 'description', 'managerId']);
    expect(names('departments', 'change')).toEqual(['description', 'managerId']);
    expect(names('movies', 'create')).toEqual(['title', 'year', 'filmId', 'genres', 'cast']);
    expect(names('employees', 'create', ['reader'])).not.toContain('nationalId');
    expect(names('employees', 'create')).not.toContain('photo');
  });

  test('begin with the kind of an entity of several kinds', () => {
    const [first] = formFields(entity('people'), HR, 'create');
    expect(first).toMatchObject({ name: 'kind', input: 'choice', isRequired: true });
  });

  test('need no value for a generated field of a new row', () => {
    expect(fieldOf('expenses', 'at')).toMatchObject({ isRequired: false, note: 'key, generated if empty' });
    expect(fieldOf('expenses', 'amount').isRequired).toBe(true);
  });

  test('are named if a row needs them, and there may be none', () => {
    expect(sayRequired(formFields(entity('departments'), HR, 'create'))).toBe('Each row needs department.');
    expect(sayRequired([fieldOf('expenses', 'at')])).toBe('');
  });

  test('say what a value must be', () => {
    expect(fieldOf('movies', 'cast').hint).toBe('JSON, such as ["one","two"]');
    expect(fieldOf('employees', 'age').hint).toMatch(/^at least \d+, at most 150$/);
    expect(fieldOf('customers', 'customerId').hint).toBe('matches ^[A-Z0-9]{2,10}$');
    expect(fieldOf('employees', 'email').hint).toBe('an email address');
    expect(fieldOf('employees', 'firstName').hint).toBe('');
  });

  test('offer the values of an enumeration, of a Boolean and of a union of constants', () => {
    const texts = (name: string, field: string) => fieldOf(name, field).choices.map(({ text }) => text);
    expect(texts('people', 'kind')).toEqual(['employee', 'customer']);
    expect(texts('logins', 'succeeded')).toEqual(['true', 'false']);
    expect(texts('products', 'discontinued')).toEqual(['0', '1']);
    expect(parseField(fieldOf('products', 'discontinued'), '1')).toEqual({ value: 1 });
    expect(parseField(fieldOf('logins', 'succeeded'), 'false')).toEqual({ value: false });
  });
});

test.each([
  ['employees', 'age', '', { value: undefined }],
  ['employees', 'age', '44', { value: 44 }],
  ['employees', 'age', 'old', { problem: 'must be a number' }],
  ['employees', 'age', ' 44 ', { value: 44 }],
  ['employees', 'age', '   ', { problem: 'must be a number' }],
  ['employees', 'age', '0x10', { problem: 'must be a number' }],
  ['employees', 'age', 'Infinity', { problem: 'must be a number' }],
  ['employees', 'age', '9007199254740993', { problem: 'must be from -9007199254740991 to 9007199254740991' }],
  ['employees', 'age', '4.5', { problem: 'must be a whole number' }],
  ['employees', 'age', '151', { problem: 'must be at most 150' }],
  ['employees', 'firstName', '', { problem: 'is required' }],
  ['employees', 'phone', 'x'.repeat(41), { problem: 'must have at most 40 characters' }],
  ['employees', 'employeeId', '12', { problem: 'must match ^\\d{6}$' }],
  ['employees', 'hireDate', '2026-02-30', { problem: 'must be a date, such as 2026-11-20' }],
  ['employees', 'email', 'nope', { problem: 'must be an email address' }],
  ['employees', 'email', 'a b@contoso.com', { problem: 'must be an email address' }],
  ['employees', 'email', 'josé@bücher.example', { value: 'josé@bücher.example' }],
  ['people', 'email', 'nobody', { problem: 'must be an email address' }],
  ['movies', 'cast', '["A"]', { value: ['A'] }],
  ['movies', 'cast', '["A"', { problem: 'must be JSON' }],
  ['movies', 'cast', '{}', { problem: 'must be of the type array' }],
])('a text of %s.%s is parsed and checked: %j', (name, field, text, parsed) => {
  expect(parseField(fieldOf(name, field), text)).toEqual(parsed);
});

test('leaves a pattern to the API that is not valid with the flag u', () => {
  const schema = { type: 'string', pattern: String.raw`^\d{3}\-\d{4}$` };
  expect(parseField({ ...fieldOf('employees', 'phone'), schema }, 'x')).toEqual({ value: 'x' });
});

test('a change sends the changed fields only, null for a removed one, and can be undone', () => {
  const fields = formFields(entity('employees'), HR, 'change');
  const before = { jobTitle: 'Clerk', phone: '555', age: 44, email: 'a@contoso.com', firstName: 'A', lastName: 'B' };
  const texts = { ...toTexts(fields, before), jobTitle: 'Buyer', phone: '', vacationHours: '8' };
  expect(findProblems(fields, texts)).toEqual({});
  const patch = toPatch(fields, toTexts(fields, before), texts);
  expect(patch).toEqual({ jobTitle: 'Buyer', phone: null, vacationHours: 8 });
  expect(toUndo(patch, before)).toEqual({ jobTitle: 'Clerk', phone: '555', vacationHours: null });
  expect(toValues(fields, texts)).toMatchObject({ jobTitle: 'Buyer', age: 44, vacationHours: 8 });
  expect(toValues(fields, texts)).not.toHaveProperty('phone');
});

test('an empty text is a value of its own, where the schema allows it', () => {
  const fields = formFields(entity('employees'), HR, 'change');
  const canBeEmpty = (name: string) => fields.find((field) => field.name === name)?.canBeEmpty;
  expect(['phone', 'firstName', 'hireDate', 'age', 'email'].map(canBeEmpty)).toEqual([
    true,
    false,
    false,
    false,
    false,
  ]);
  // A key has no empty part.
  expect(
    formFields(entity('customers'), HR, 'create').filter((field) => /key/.test(field.note) && field.canBeEmpty),
  ).toEqual([]);
  const none = toTexts(fields, {});
  const empty = toTexts(fields, { phone: '' });
  expect([none.phone, empty.phone]).toEqual(['', EMPTY_TEXT]);
  expect(toPatch(fields, none, { ...none, phone: EMPTY_TEXT })).toEqual({ phone: '' });
  expect(toPatch(fields, empty, { ...empty, phone: '' })).toEqual({ phone: null });
  expect(toPatch(fields, empty, empty)).toEqual({});
  expect(toUndo({ phone: '5' }, { phone: '' })).toEqual({ phone: '' });
});

describe('a form accepts every value that the API accepts:', () => {
  const URLS = ['http://a/b c', 'HTTP://Ä.example/?q=%', 'mailto:a@b.example', 'http://[::1]:8080/', 'urn:x', 'a:'];
  /** By kind of a field: its type, and values that its own pattern does not generate. */
  const KINDS: Readonly<Record<string, readonly [z.ZodType, fc.Arbitrary<unknown>?]>> = {
    email: [z.email()],
    'email of HTML': [z.email({ pattern: z.regexes.html5Email })],
    'email of RFC 5322': [z.email({ pattern: z.regexes.rfc5322Email })],
    'email of any script': [z.email({ pattern: z.regexes.unicodeEmail })],
    UUID: [z.uuid()],
    GUID: [z.guid()],
    URL: [z.url(), fc.oneof(fc.webUrl({ withQueryParameters: true, withFragments: true }), fc.constantFrom(...URLS))],
    'web address': [z.httpUrl(), fc.webUrl()],
    hostname: [z.hostname(), fc.oneof(fc.domain(), fc.constantFrom('A.example.', 'localhost'))],
    emoji: [z.emoji(), fc.constantFrom('👍', '👩‍👩‍👧')],
    Base64: [z.base64(), fc.base64String()],
    base64url: [z.base64url(), fc.uint8Array().map((bytes) => Buffer.from(bytes).toString('base64url'))],
    hex: [z.hex()],
    JWT: [z.jwt(), fc.constant('eyJhbGciOiJIUzI1NiJ9.e30.c2ln')],
    nanoid: [z.nanoid()],
    ULID: [z.ulid()],
    IPv4: [z.ipv4(), fc.ipV4()],
    IPv6: [z.ipv6(), fc.ipV6()],
    'IP address': [z.union([z.ipv4(), z.ipv6()]), fc.oneof(fc.ipV4(), fc.ipV6())],
    'IPv4 range': [z.cidrv4()],
    MAC: [z.mac()],
    'phone number': [z.e164()],
    date: [z.iso.date()],
    time: [z.iso.time()],
    'time of a precision': [z.iso.time({ precision: 3 })],
    instant: [z.iso.datetime()],
    'instant to the minute': [z.iso.datetime({ precision: -1 })],
    'instant with an offset': [z.iso.datetime({ offset: true })],
    'local instant': [z.iso.datetime({ local: true })],
    duration: [z.iso.duration(), fc.constantFrom('P3W', 'P1Y2D', 'PT1H30S', 'P1DT0.5S', 'PT1,5S', 'P1Y2M3DT4H5M6S')],
    'lower case': [z.string().lowercase(), fc.string()],
    prefix: [z.string().startsWith('a'), fc.string().map((text) => `a${text}`)],
    template: [z.templateLiteral(['a', z.number()])],
    text: [z.string().min(1).max(5), fc.string({ unit: 'grapheme' })],
    'whole number': [z.int(), fc.maxSafeInteger()],
    number: [z.number().min(-1e9).max(1e9), fc.double({ noNaN: true }).filter((value) => !Object.is(value, -0))],
    step: [z.number().multipleOf(0.01), fc.integer({ min: 0, max: 1e6 }).map((cents) => cents / 100)],
    'list of tags': [z.array(z.string()).max(3), fc.array(fc.string())],
    // The API accepts no member `__proto__`.
    record: [
      z.record(z.string(), z.number()),
      fc.dictionary(
        fc.string().filter((name) => name !== '__proto__'),
        fc.integer(),
      ),
    ],
    tuple: [z.tuple([z.string(), z.boolean()]), fc.tuple(fc.string(), fc.boolean())],
  };

  test.each(Object.entries(KINDS))('%s', (_, [type, values]) => {
    const schema = httpDoor.toJsonSchema(type);
    const canBeEmpty = type.safeParse('').success;
    const input = findInput(schema, '');
    const field = { name: 'value', input, isRequired: true, canBeEmpty, note: '', hint: '', choices: [], schema };
    const generated = values ?? fc.stringMatching(type._zod.pattern ?? expect.unreachable());
    const accepted = generated.filter((value) => type.safeParse(value).success);
    fc.assert(
      fc.property(accepted, (value) => {
        expect(parseField(field, toFieldText(field, value))).toEqual({ value });
      }),
    );
  });
});

test('names a format instead of its pattern', () => {
  const schema = httpDoor.toJsonSchema(z.iso.datetime({ precision: 3 }));
  expect(schema).toHaveProperty('pattern');
  expect(findProblem(schema, 'noon')).toBe('must be an instant, such as 2026-11-20T09:00:00Z');
  expect(findProblem(schema, '2026-11-20T09:00:00Z')).toBeUndefined();
  expect(findProblem({ type: 'string', pattern: '^a$' }, 'b')).toBe('must match ^a$');
});
