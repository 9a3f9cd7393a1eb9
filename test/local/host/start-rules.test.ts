import { expect, test } from 'vitest';
import type { HostSettings } from '../../../local/host/host-settings.ts';
import type { HostedFunction } from '../../../local/host/load-app.ts';
import { requireStartRules } from '../../../local/host/start-rules.ts';

const SETTINGS = { http: { routePrefix: 'api' }, hasExtensionBundle: true } as HostSettings;
type Trigger = HostedFunction['trigger'];
const named = (name: string, trigger: Trigger, retryOptions?: object) =>
  ({ name, trigger, metadata: { name, bindings: {}, retryOptions } }) as HostedFunction;
const http = (name: string, route?: string, ...methods: string[]) =>
  named(name, { type: 'httpTrigger', methods, route, authLevel: 'anonymous' });
const queue = (queueName: string) => named('q', { type: 'queueTrigger', queueName, connection: 'AzureWebJobsStorage' });
const timer = (schedule: string) => named('t', { type: 'timerTrigger', schedule });
const check = (functions: readonly HostedFunction[], settings: Partial<HostSettings> = {}) =>
  requireStartRules(functions, { ...SETTINGS, ...settings });

test.each(['1x', 'with space', 'a.b', 'thíngs', 'Host', 'x'.repeat(129)])('rejects the function name %j', (name) => {
  expect(() => check([http(name, 'x')])).toThrow(`The function name ${JSON.stringify(name)} is not valid: `);
});

test('accepts a function name of 128 letters, digits, - and _', () => {
  check([http(`a-_9${'x'.repeat(124)}`, 'x')]);
});

test.each(['admin', '/Administrators/', 'runtimes/x'])('rejects the reserved route %j', (route) => {
  expect(() => check([http('x', route)])).toThrow('The function x has the reserved route ');
});

test('rejects a function without a route whose name is a reserved route', () => {
  expect(() => check([http('Admin1')])).toThrow('has the reserved route Admin1: a route must not start with admin.');
});

test.each([
  ['a/{id', 'may have only'],
  ['{a}/{A}', 'has a parameter twice'],
  ['{a}{b}', 'side by side'],
  ['a//b', 'has an empty segment'],
  ['a?b', 'has a ?'],
  ['{*rest}/a', 'may have only'],
  ['a/{id:foo}', 'may have only'],
])('rejects the route template %j', (route, why) => {
  expect(() => check([http('x', route)])).toThrow(
    new RegExp(`The function x cannot be routed: the route api/.* ${why.replace('?', '\\?')}`),
  );
});

test('rejects every route below a prefix that ends with a slash', () => {
  expect(() => check([http('x', 'a')], { http: { routePrefix: 'api/' } })).toThrow('has an empty segment');
});

test.each(['~/x', '~x'])('rejects the route %j at the root, and accepts it below a prefix', (route) => {
  expect(() => check([http('x', route)], { http: { routePrefix: '' } })).toThrow('begins with ~');
  check([http('x', route)]);
});

test('accepts a reserved word that does not begin a route', () => {
  check([http('x', 'x/admin'), http('y', '/lead/trail/'), http('z', '{a}-{b}/{*rest}')]);
});

test.each([
  ['of the same text', [http('a', 'x/{id}', 'GET'), http('b', 'x/{id}', 'GET', 'PUT')]],
  ['in another case, with slashes', [http('a', 'x/{id}', 'HEAD'), http('b', '/X/{ID}/', 'HEAD')]],
  ['of which one has all methods', [http('a', 'x', 'GET'), http('b', 'x')]],
  ['of which one is the name of the function', [http('x', undefined, 'GET'), http('y', 'x', 'GET')]],
])('rejects two functions with routes %s and a common method', (_, functions) => {
  expect(() => check(functions)).toThrow(/^The functions \w and \w have the route .* and share a method\.$/);
});

test('accepts two functions of one route with other methods, or with parameters of other names', () => {
  check([http('a', 'x', 'GET'), http('b', 'x', 'PUT'), http('c', 'x/{a}', 'GET'), http('d', 'x/{b}', 'GET')]);
});

test.each(['', 'ab', 'a_bc', '-abc', 'abc-', 'a--bc', 'x'.repeat(64)])('rejects the queue name %j', (name) => {
  expect(() => check([queue(name)])).toThrow(`The function q has the invalid queue name ${JSON.stringify(name)}: `);
});

test('accepts a queue name with upper-case letters, which the host folds, and twice the same', () => {
  check([queue('Abc-1'), queue('Abc-1')]);
});

test.each([
  '',
  '* * * *',
  '0 0 0 0 0 0 0',
  '61 * * * *',
  '0 0 L * *',
  '0 0 ? * *',
  '0 0 * * 1#2',
  '0 0 15W * *',
  '0 0 * * 7',
  '0 0 * * 5-7',
  '@daily',
  '%NO_SUCH%',
])('rejects the schedule %j', (schedule) => {
  expect(() => check([timer(schedule)])).toThrow(`The function t has the invalid schedule ${schedule}: `);
});

test.each(['0 */5 * * * *', '*/5 * * * *', '0 0 1-5,10 JAN,MAR MON-FRI', '0 40 * * * *', '00:05:00', '0 7 * * *'])(
  'accepts the schedule %j',
  (schedule) => {
    check([timer(schedule)]);
  },
);

const retried = (retryOptions: object) =>
  check([named('t', { type: 'timerTrigger', schedule: '00:05:00' }, retryOptions)]);

test.each([
  ['an unknown strategy', { retryStrategy: 'always', maxRetryCount: 1 }, 'retryStrategy: '],
  ['fewer retries than -1', { retryStrategy: 'fixedDelay', maxRetryCount: -2, delayInterval: { seconds: 1 } }, 'max'],
  ['a fixed delay without the delay', { retryStrategy: 'fixedDelay', maxRetryCount: 1 }, 'delayInterval: '],
  [
    'a back-off without an upper bound',
    { retryStrategy: 'exponentialBackoff', maxRetryCount: 1, minimumInterval: { seconds: 1 } },
    'maximumInterval: ',
  ],
  [
    'a back-off with bounds in the wrong order',
    {
      retryStrategy: 'exponentialBackoff',
      maxRetryCount: 1,
      minimumInterval: { seconds: 2 },
      maximumInterval: { seconds: 1 },
    },
    'minimumInterval: expected at most maximumInterval',
  ],
])('rejects a retry policy with %s', (_, policy, why) => {
  expect(() => retried(policy)).toThrow(`The function t has an invalid retry policy: ${why}`);
});

test('accepts a retry policy without an end, and one with equal bounds', () => {
  retried({ retryStrategy: 'fixedDelay', maxRetryCount: -1, delayInterval: { seconds: 0 } });
  const interval = { seconds: 5 };
  retried({
    retryStrategy: 'exponentialBackoff',
    maxRetryCount: 0,
    minimumInterval: interval,
    maximumInterval: interval,
  });
});

test('rejects a queue trigger without an extension bundle', () => {
  expect(() => check([queue('abc')], { hasExtensionBundle: false })).toThrow('host.json needs an extensionBundle');
  check([http('x')], { hasExtensionBundle: false });
});

test('names every error', () => {
  expect(() => check([http('1', 'a'), queue('b')])).toThrow(/^The function name "1".*\nThe function q /);
});
