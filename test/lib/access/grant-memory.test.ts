import { expect, test } from 'vitest';
import type { Caller } from '../../../lib/index.ts';
import { employees, model } from '../../fixtures/model.ts';
import { accessChecks } from '../../kit/access.ts';
import { baseValues } from '../../kit/base.ts';
import { type ChangeRecord, type Engine, engineCore, engineTransfer, engineWrite } from '../../kit/engine.ts';
import { httpDoor } from '../../kit/http.ts';
import { storageAccounts, storageKeys } from '../../kit/storage.ts';
import { respondWith } from '../../respond-with.ts';
import { testStorage } from '../../storage.ts';
import { openWorld, somebody } from '../../world.ts';
import { testApp, testInvocation, testRequest } from '../http/request.ts';

const ROW = { entity: 'employees', scope: 'own' };
const NEW_GRANT = '3 transactions';
const REPEATED = '0 transactions';

const world = await openWorld(import.meta.url);

/** One for all processes: two clocks that differ by a millisecond may be in two seconds. */
const START = Date.now();

/** A process of the app with its own storage client, and so with its own memory. */
function startProcess({ append = () => Promise.resolve() }: { readonly append?: () => Promise<void> } = {}) {
  const clock = { now: START };
  const engine: Engine = {
    ...engineCore.createEngine(storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) })),
    now: () => clock.now,
  };
  const recorded: ChangeRecord[] = [];
  const audit = {
    append: async (changes: readonly ChangeRecord[]) => {
      await append();
      recorded.push(...changes);
    },
    catchUp: async () => undefined,
  };
  const route = httpDoor.grantRoute(model.list);
  const signer = storageKeys.tableSasSigner(engine.storage);
  async function ask(caller: Caller, body: object = ROW, path = 'grants') {
    const authenticate = async () => caller;
    const app = testApp(import.meta.url, { engine, entities: model.list, audit, authenticate, signer: () => signer });
    const text = JSON.stringify(body);
    const headers = { 'content-type': 'application/json', 'content-length': String(text.length) };
    const request = testRequest({ method: 'POST', path, body: text, headers });
    const response = await respondWith(() => app, route)(request, testInvocation().invocation);
    const timing = String(new Headers(Object.entries(response.headers ?? {})).get('server-timing'));
    return { status: response.status, body: JSON.parse(String(response.body)), cost: /"(\d+ \w+)"/.exec(timing)?.[1] };
  }
  return { clock, engine, recorded, ask };
}

async function hire(over: Partial<Caller> = {}): Promise<Caller> {
  const one = somebody();
  await engineWrite.createEntity(world.engine, employees, one);
  await world.settle();
  return { subject: one.email, roles: ['reader'], claims: { email: one.email }, ...over };
}

test('repeats a grant without a storage call, a record or a new expiry', async () => {
  const { ask, recorded, clock } = startProcess();
  const caller = await hire();
  const first = await ask(caller);
  expect(first).toMatchObject({ status: 201, cost: NEW_GRANT });
  clock.now += accessChecks.GRANTS_KEPT_MS - 1;
  expect(await ask(caller)).toEqual({ ...first, cost: REPEATED });
  expect(recorded).toHaveLength(1);
});

test('issues a new grant after a move, if the caller asks to renew it, and repeats that one', async () => {
  const { ask, recorded } = startProcess();
  const caller = await hire();
  const first = await ask(caller);
  await engineTransfer.requestMove(world.engine, employees, first.body.key, { department: 'Marketing' });
  await world.settle();
  expect(await ask(caller)).toEqual({ ...first, cost: REPEATED });
  const renewed = await ask(caller, { ...ROW, renew: true });
  expect(renewed).toMatchObject({ status: 201, cost: NEW_GRANT, body: { key: { department: 'Marketing' } } });
  expect(recorded).toHaveLength(2);
  expect(await ask(caller)).toEqual({ ...renewed, cost: REPEATED });
});

test('issues a new grant after five minutes', async () => {
  const { ask, recorded, clock } = startProcess();
  const caller = await hire();
  const first = await ask(caller);
  clock.now += accessChecks.GRANTS_KEPT_MS;
  const later = await ask(caller);
  expect(later).toMatchObject({ status: 201, cost: NEW_GRANT });
  expect(Date.parse(later.body.expiresAt)).toBe(Date.parse(first.body.expiresAt) + accessChecks.GRANTS_KEPT_MS);
  expect(recorded).toHaveLength(2);
});

test('repeats no grant for another subject, claim, role, entity or set of permissions', async () => {
  const { ask } = startProcess();
  const [caller, other] = [await hire(), await hire()];
  await ask(caller);
  const same = { ...caller, subject: 'another' };
  expect(await ask(same)).toMatchObject({ status: 201, cost: NEW_GRANT });
  const claimed = await ask({ ...caller, claims: other.claims });
  expect(claimed).toMatchObject({ status: 201, cost: NEW_GRANT });
  expect(claimed.body.key.employeeId).not.toBe((await ask(caller)).body.key.employeeId);
  const promoted = await ask({ ...caller, roles: ['hr'] });
  expect(promoted).toMatchObject({ status: 201, cost: NEW_GRANT });
  expect(promoted.body.fields).toContain('nationalId');
  expect((await ask(caller)).body.fields).not.toContain('nationalId');
  const expenses = { entity: 'expenses', scope: 'own', permissions: 'r' };
  expect(await ask(caller, expenses)).toMatchObject({ status: 201, cost: NEW_GRANT });
  const adding = await ask(caller, { ...expenses, permissions: 'ar' });
  expect(adding).toMatchObject({ status: 201, cost: NEW_GRANT, body: { permissions: 'ra' } });
  expect(await ask(caller, { ...expenses, permissions: 'rra' })).toEqual({ ...adding, cost: REPEATED });
});

test('a process that revokes refuses the next request; another one repeats what it issued and issues nothing new', async () => {
  const [here, there] = [startProcess(), startProcess()];
  const caller = await hire();
  await here.ask(caller);
  const issued = await there.ask(caller);
  const grantsEndAt = await accessChecks.revokeGrants(here.engine, caller.subject);
  expect(await here.ask(caller)).toMatchObject({ status: 403 });
  const repeated = await there.ask(caller);
  expect(repeated).toEqual({ ...issued, cost: REPEATED });
  expect(Date.parse(repeated.body.expiresAt)).toBeLessThanOrEqual(grantsEndAt);
  expect(await there.ask(caller, { entity: 'expenses', scope: 'own' })).toMatchObject({ status: 403 });
  there.clock.now += accessChecks.GRANTS_KEPT_MS;
  expect(await there.ask(caller)).toMatchObject({ status: 403 });
  expect(there.recorded).toHaveLength(1);
});

/** A process whose audit log stores nothing until `resume` is called. */
function startStalled() {
  const [called, resumed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const append = () => {
    called.resolve();
    return resumed.promise;
  };
  return { ...startProcess({ append }), called: called.promise, resume: resumed.resolve };
}

test('does not remember a grant that was checked before a revocation and recorded after it', async () => {
  const { ask, engine, called, resume } = startStalled();
  const caller = await hire();
  const asked = ask(caller);
  await called;
  await accessChecks.revokeGrants(engine, caller.subject);
  resume();
  expect(await asked).toMatchObject({ status: 201 });
  expect(await ask(caller)).toMatchObject({ status: 403 });
});

test('repeats no grant that is not yet in the audit log', async () => {
  const { ask, recorded, called, resume } = startStalled();
  const caller = await hire();
  const first = ask(caller);
  await called;
  const second = ask(caller);
  expect(await Promise.race([second, new Promise((soon) => setTimeout(soon, 500, 'waits'))])).toBe('waits');
  resume();
  expect([await first, await second]).toMatchObject([{ cost: NEW_GRANT }, { cost: NEW_GRANT }]);
  expect(recorded).toHaveLength(2);
});

test('does not remember a grant whose record failed', async () => {
  let isDown = true;
  const { ask } = startProcess({
    append: () => (isDown ? Promise.reject(baseValues.unavailable('Down.', undefined)) : Promise.resolve()),
  });
  const caller = await hire();
  expect(await ask(caller)).toMatchObject({ status: 503 });
  isDown = false;
  expect(await ask(caller)).toMatchObject({ status: 201, cost: NEW_GRANT });
});

test('an explanation neither uses the memory nor fills it', async () => {
  const { ask } = startProcess();
  const caller = await hire({ roles: ['hr'] });
  const explained = await ask(caller, ROW, 'grants?explain=true');
  expect(explained.body.transactions).toBe(3);
  expect(await ask(caller)).toMatchObject({ status: 201, cost: NEW_GRANT });
  expect((await ask(caller, ROW, 'grants?explain=true')).body.transactions).toBe(3);
});
