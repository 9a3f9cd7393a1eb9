import type { HttpFunctionOptions, StorageQueueFunctionOptions } from '@azure/functions';
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  createRowkey,
  defineEntity,
  defineModel,
  defineOperation,
  RowkeyError,
  type RowkeyOptions,
} from '../../lib/index.ts';
import { type FunctionsApp, registerFunctions } from '../../lib/register-functions.ts';

const refusal = new RowkeyError('wrong-setting', 'Nothing is opened.');

function instance(prefix: string, over: Partial<RowkeyOptions<never>> & { entity?: string; hasBackup?: boolean } = {}) {
  const { entity = 'things', hasBackup, ...options } = over;
  const checkIn = defineOperation('checkIn', {
    summary: 'Check in',
    kind: 'read',
    roles: ['reader'],
    input: z.object({}),
    output: z.object({}),
  });
  const declared = defineEntity(entity, {
    schema: z.object({ city: z.string(), id: z.string() }),
    table: 'things',
    key: { partition: '{city}', row: '{id}' },
    access: { read: ['reader'], write: ['reader'] },
  });
  const model = defineModel({
    roles: ['reader'],
    operatorRole: 'reader',
    prefix,
    ...(hasBackup && { backup: {} }),
    entities: [declared],
    operations: [checkIn],
  });
  const operations = { checkIn: async () => ({}) };
  return createRowkey({ model, operations, refusal, ...options } as never);
}

/** Collects what is registered. */
function testApp() {
  const http: (HttpFunctionOptions & { name: string })[] = [];
  const queues: (StorageQueueFunctionOptions & { name: string })[] = [];
  const timers: string[] = [];
  const hooks: string[] = [];
  const app = {
    http: (name: string, options: HttpFunctionOptions) => void http.push({ name, ...options }),
    storageQueue: (name: string, options: StorageQueueFunctionOptions) => void queues.push({ name, ...options }),
    timer: (name: string) => void timers.push(name),
    hook: {
      appStart: () => void hooks.push('appStart'),
      preInvocation: () => void hooks.push('preInvocation'),
      appTerminate: () => void hooks.push('appTerminate'),
    },
  } as unknown as FunctionsApp;
  return { app, http, queues, timers, hooks };
}

test('two instances on one app have functions, queues and routes of their own', () => {
  const { app, http, queues, timers, hooks } = testApp();
  registerFunctions(app, instance(''));
  const first = { http: http.length, timers: timers.length };
  registerFunctions(app, instance('shop', { path: 'store', connection: 'ShopStorage' }));

  const names = [...http, ...queues].map(({ name }) => name).concat(timers);
  expect(new Set(names).size).toBe(names.length);
  expect([http.length, timers.length]).toEqual([2 * first.http, 2 * first.timers]);
  expect(timers.slice(first.timers)).toEqual(timers.slice(0, first.timers).map((name) => `shop-${name}`));
  expect(queues.map(({ name, queueName, connection }) => [name, queueName, connection])).toEqual([
    ['index-changes', 'index-changes', 'AzureWebJobsStorage'],
    ['transfers', 'transfers', 'AzureWebJobsStorage'],
    ['shop-index-changes', 'shop-index-changes', 'ShopStorage'],
    ['shop-transfers', 'shop-transfers', 'ShopStorage'],
  ]);
  // The host calls the first function by name whose route matches.
  const sorted = http.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  expect(sorted.map(({ name, route }) => [name, route])).toEqual([
    ['zz-api-store', 'store/{*path}'],
    ['zzz-api', '{*path}'],
  ]);
  // Each instance starts; the others are for every function, and would count each run twice.
  expect(hooks.toSorted()).toEqual(['appStart', 'appStart', 'appTerminate', 'preInvocation']);
});

test('only a model that declares a backup has its timers', () => {
  const [without, backedUp] = [testApp(), testApp()];
  registerFunctions(without.app, instance(''));
  registerFunctions(backedUp.app, instance('', { hasBackup: true }));
  expect(without.timers.filter((name) => name.startsWith('backup'))).toEqual([]);
  expect(backedUp.timers.toSorted()).toEqual([...without.timers, 'backup', 'backup-drill'].toSorted());
});

test('with an empty route prefix the API stays below /api, and the one without a path has a console', () => {
  const [prefixed, plain] = [testApp(), testApp()];
  for (const { app, options } of [
    { app: prefixed.app, options: { routePrefix: '' } as const },
    { app: plain.app, options: {} },
  ]) {
    registerFunctions(app, instance(''), options);
    registerFunctions(app, instance('shop', { path: 'store' }), options);
  }
  const routesOf = ({ http }: ReturnType<typeof testApp>) => http.map(({ name, route }) => [name, route]);
  expect(routesOf(plain)).toEqual([
    ['zzz-api', '{*path}'],
    ['zz-api-store', 'store/{*path}'],
  ]);
  expect(routesOf(prefixed)).toEqual([
    ['zzz-api', 'api/{*path}'],
    ['web-console', 'console/{*path}'],
    ['web-docs', 'docs/{*path}'],
    ['zzzz-root', '{*path}'],
    ['zz-api-store', 'api/store/{*path}'],
  ]);
});

test('each part of a queue has a function of its own', () => {
  const { app, queues } = testApp();
  const { runtime, ...rowkey } = instance('shop');
  const model = { ...runtime.model, queueParts: 2 };
  registerFunctions(app, { ...rowkey, runtime: { ...runtime, model } });
  expect(queues.map(({ name, queueName }) => [name, queueName])).toEqual(
    ['index-changes', 'index-changes-1', 'transfers', 'transfers-1'].map((part) => [`shop-${part}`, `shop-${part}`]),
  );
});

test('each part of a queue has a function in each storage account', () => {
  const { app, queues } = testApp();
  const accounts = ['first', 'second'].map((name) => ({ name, connectionString: 'UseDevelopmentStorage=true' }));
  registerFunctions(app, instance('', { refusal: undefined, storage: { accounts } } as never));
  expect(queues.map(({ name, queueName, connection }) => [name, queueName, connection])).toEqual([
    ['index-changes', 'index-changes', 'AzureWebJobsStorage'],
    ['transfers', 'transfers', 'AzureWebJobsStorage'],
    ['index-changes-second', 'index-changes', 'second'],
    ['transfers-second', 'transfers', 'second'],
  ]);
});

test('an instance without a prefix or path has the names and the connection of the declaration', () => {
  const { app, http, queues } = testApp();
  registerFunctions(app, instance(''));
  expect(http.map(({ name }) => name)).toEqual(['zzz-api']);
  expect(queues[0]).toMatchObject({ name: 'index-changes', connection: 'AzureWebJobsStorage' });
});

test.each([
  [
    'the prefix',
    instance('', { path: 'shop' }),
    'The prefix "" belongs to another instance on the app. Give each model a prefix of its own.',
  ],
  [
    'the path',
    instance('shop'),
    'The path "" belongs to another instance on the app. Give each instance a path of its own.',
  ],
  [
    'a route of the API',
    instance('shop', { path: 'health' }),
    'The path "health" begins routes of the instance without a path. Give it another name.',
  ],
  [
    'an entity',
    instance('shop', { path: 'things' }),
    'The path "things" begins routes of the instance without a path. Give it another name.',
  ],
  [
    'an operation, whatever its case',
    instance('shop', { path: 'checkin' }),
    'The path "checkin" begins routes of the instance without a path. Give it another name.',
  ],
  [
    'a reserved word',
    instance('shop', { path: 'administration' }),
    'The path "administration" is not accepted. Use 1 to 60 lower-case letters, digits and hyphens, a letter first, and begin it with neither admin nor runtime.',
  ],
  [
    'a parameter',
    instance('shop', { path: '{city}' }),
    'The path "{city}" is not accepted. Use 1 to 60 lower-case letters, digits and hyphens, a letter first, and begin it with neither admin nor runtime.',
  ],
])('a second instance is rejected for %s, and nothing of it is registered', (_, second, message) => {
  const { app, http, queues, timers } = testApp();
  registerFunctions(app, instance(''));
  const before = [http.length, queues.length, timers.length];
  expect(() => registerFunctions(app, second)).toThrow(`The instance cannot be registered.\n${message}`);
  expect([http.length, queues.length, timers.length]).toEqual(before);
});

test('an instance without a path is rejected if its routes begin with the path of an earlier one', () => {
  const { app } = testApp();
  registerFunctions(app, instance('shop', { path: 'toys' }));
  expect(() => registerFunctions(app, instance('', { entity: 'toys' }))).toThrow('The path "toys" begins routes');
  expect(() => registerFunctions(app, instance(''))).not.toThrow();
});

test('entities, prefixes and paths may have the names of functions and the words that the host reserves', () => {
  const { app, http } = testApp();
  registerFunctions(app, instance('', { entity: 'administrators' }), { routePrefix: '' });
  registerFunctions(app, instance('zzzz', { entity: 'zzzz', path: 'zzzz' }), { routePrefix: '' });
  expect(http.map(({ route }) => route)).toContain('api/zzzz/{*path}');
  const names = http.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});
