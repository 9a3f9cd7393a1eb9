import type fc from 'fast-check';
import { createQueueWorker } from '../../local/walk/queue-worker.ts';
import type { openAccessApp, Reply } from '../access-app.ts';
import { baseValues } from '../kit/base.ts';
import type { Entity, LinkedModel } from '../kit/define.ts';
import { engineWrite } from '../kit/engine.ts';
import { type Caller, may, mayChange, type Row } from './evaluator.ts';
import { type Action, keyOf, type Plan, type Rules, rulesOf, VALUES, zoneOf } from './random-model.ts';
import type { beginnings, Kind } from './random-requests.ts';

type App = Awaited<ReturnType<typeof openAccessApp>>;

export const root: Caller = { subject: 'root', roles: ['root', 'operator'], claims: {} };

export const FIELDS: Readonly<Record<Kind, readonly string[]>> = {
  tasks: ['team', 'owner', 'id', 'state', 'day', 'rank', 'flag', 'note', 'code', 'size'],
  notes: ['team', 'owner', 'id', 'day', 'state', 'rank', 'number', 'text'],
};

export const pick = (row: Row, fields: readonly string[]): Row =>
  Object.fromEntries(fields.filter((field) => row[field] !== undefined).map((field) => [field, row[field]]));
const sorted = (row: Row): string => JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)));

export function omit(row: Row, field: string): Row {
  const { [field]: _, ...others } = row;
  return others;
}

/** A row with its derived field. */
export const derive = (row: Row): Row => ({ ...row, zone: zoneOf(row) });

export class Mismatch extends Error {}

interface Result {
  readonly status: number;
}

/** Sends the requests of leads without a token. What a visitor may not do is 401, and 403 for others. */
function asVisitors({ ask }: App): App['ask'] {
  const isVisitor = ({ roles }: Partial<Caller>) => roles?.join() === 'lead';
  return async (caller, ...request) => {
    if (!isVisitor(caller)) return ask(caller, ...request);
    const reply = await ask({ subject: '', roles: ['lead'], claims: {} }, ...request);
    if (reply.status === 403) throw new Mismatch(`A visitor got 403: ${reply.text}`);
    const { reads, results } = Object(reply.body) as {
      readonly reads?: Readonly<Record<string, Result>>;
      readonly results?: readonly Result[];
    };
    const toStatus = (status: number) => (status === 401 ? 403 : status);
    const toResult = (one: Result) => {
      if (one.status === 403) throw new Mismatch(`A visitor got 403 for a part: ${reply.text}`);
      return { ...one, status: toStatus(one.status) };
    };
    const parts = {
      ...(reads ? { reads: baseValues.mapValues(reads, toResult) } : {}),
      ...(results ? { results: results.map(toResult) } : {}),
    };
    const body = reads || results ? { ...reply.body, ...parts } : reply.body;
    return { ...reply, status: toStatus(reply.status), body };
  };
}

/** The app of a random model, and what is stored in it. It compares responses with what the evaluator expects. */
export class World {
  readonly people: Row[] = [];
  readonly members: Row[] = [];
  readonly rows: Readonly<Record<Kind, Map<string, Row>>> = { tasks: new Map(), notes: new Map() };
  readonly rules: Readonly<Record<Kind, Rules>>;
  readonly keys: Readonly<Record<Kind, readonly string[]>>;
  readonly plan: Plan;
  readonly app: App;
  readonly #model: LinkedModel;
  readonly worker: ReturnType<typeof createQueueWorker>;
  /** What the root has read since the last write. */
  known = new Map<string, unknown>();
  cases = 0;
  decisions = 0;

  constructor(plan: Plan, app: App, model: LinkedModel) {
    this.plan = plan;
    this.app = plan.isLeadVisitor ? { ...app, ask: asVisitors(app) } : app;
    this.#model = model;
    this.worker = createQueueWorker(
      { engine: app.engine, entities: model.list, log: console },
      { lastLogged: () => '' },
    );
    this.rules = { tasks: rulesOf(plan, plan.tasks), notes: rulesOf(plan, plan.notes) };
    const { all } = keyOf(plan);
    this.keys = { tasks: all, notes: [...all, 'number'] };
  }

  async begin({ tasks, members, people }: typeof beginnings extends fc.Arbitrary<infer T> ? T : never): Promise<void> {
    for (const [person, team] of Object.entries(people)) await this.addPerson(person, team);
    for (const member of members) {
      this.members.push(member);
      this.expect(await this.app.ask(root, 'POST', 'members', member), 201, 'members');
    }
    await this.#createAll('tasks', tasks);
    await this.#createAll(
      'notes',
      tasks.filter(({ rank }) => Number(rank) > 0),
    );
  }

  async #createAll(kind: Kind, given: readonly Row[]): Promise<void> {
    const rows = given.map((row) => this.body(kind, row));
    // By the app itself: no caller may name other owners.
    const outcomes = await engineWrite.writeBatch(
      this.app.engine,
      this.entityOf(kind),
      rows.map((create) => ({ create })),
    );
    for (const [at, row] of rows.entries()) if (!(outcomes[at] instanceof Error)) this.set(kind, row);
    await this.worker.settle();
  }

  entityOf(kind: Kind): Entity {
    const entity = this.#model.list.find(({ name }) => name === kind);
    if (!entity) throw new Error(kind);
    return entity;
  }

  async addPerson(person: string, team: string): Promise<void> {
    const row = { person, team, email: `${person}@x` };
    const { status } = await this.app.ask(root, 'PUT', `people/${person}`, row);
    if (status !== 200 && status !== 201) throw new Mismatch(`people: ${status}`);
    const at = this.people.findIndex((each) => each.person === person);
    this.people.splice(at < 0 ? this.people.length : at, 1, row);
  }

  expect({ status, text }: Pick<Reply, 'status' | 'text'>, expected: number | readonly number[], what: string): void {
    this.cases += 1;
    if (![expected].flat().includes(status)) throw new Mismatch(`${status} in place of ${expected}: ${text}\n${what}`);
  }

  same(found: unknown, expected: unknown, what: string): void {
    const [one, other] = [found, expected].map((value) =>
      Array.isArray(value) ? JSON.stringify(value.map((row) => sorted(row))) : sorted(value as Row),
    );
    if (one !== other) throw new Mismatch(`${one} in place of ${other}\n${what}`);
  }

  may(caller: Caller, kind: Kind, action: Action, row: Row): boolean {
    this.decisions += 1;
    return may(this, caller, this.rules[kind], action, this.derive(row));
  }

  /** Without `before`, whether the caller may have left a row so. */
  mayChange(caller: Caller, kind: Kind, before: Row | undefined, after: Row): boolean {
    this.decisions += 1;
    return mayChange(this, caller, this.rules[kind], before && this.derive(before), this.derive(after));
  }

  /** True if the row is stored as it is. */
  has(kind: Kind, row: Row): boolean {
    const stored = this.rows[kind].get(this.idOf(kind, row));
    return stored !== undefined && sorted(stored) === sorted(this.derive(row));
  }

  /** The row with its derived field, if the model has one. */
  derive(row: Row): Row {
    return this.plan.isDerived ? derive(row) : row;
  }

  /** Remembers that the row is stored. */
  set(kind: Kind, row: Row): void {
    this.rows[kind].set(this.idOf(kind, row), this.derive(row));
  }

  idOf(kind: Kind, row: Row): string {
    return JSON.stringify(pick(row, this.keys[kind]));
  }

  pathOf(kind: Kind, row: Row): string {
    return [kind, ...this.keys[kind].map((field) => String(row[field]))].join('/');
  }

  /** Compares what is stored with what the writes should have left. */
  async check(): Promise<void> {
    for (const kind of ['tasks', 'notes'] as const) {
      const { body } = await this.app.ask(root, 'GET', `operations/scan/${kind}?top=1000`);
      const found = (body.items as Row[]).map(sorted).sort();
      const expected = [...this.rows[kind].values()].map(sorted).sort();
      if (found.join() !== expected.join()) throw new Mismatch(`${kind}: ${found} in place of ${expected}`);
    }
    if (!this.plan.indexes.includes('zone')) return;
    for (const zone of VALUES.zone) {
      const { body } = await this.app.ask(root, 'GET', `tasks/by/zone/${zone}?top=1000`);
      const found = (body.items as Row[]).map(sorted).sort();
      const expected = [...this.rows.tasks.values()]
        .filter((row) => row.zone === zone)
        .map(sorted)
        .sort();
      if (found.join() !== expected.join()) throw new Mismatch(`zone ${zone}: ${found} in place of ${expected}`);
    }
  }

  body(kind: Kind, row: Row): Row {
    return pick(row, FIELDS[kind]);
  }
}
