import type fc from 'fast-check';
import { listMine } from '../../lib/api/mine.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import type { LinkedModel } from '../../lib/define/define-model.ts';
import { writeBatch } from '../../lib/engine/write/entity-batch.ts';
import { createQueueWorker } from '../../local/walk/queue-worker.ts';
import type { openAccessApp, Reply } from '../access-app.ts';
import { type Caller, hasRole, type List, listed, may, type Row, reachesAll } from './evaluator.ts';
import { ACTIONS, type Action, keyOf, type Plan, type Rules, rulesOf } from './random-model.ts';
import type { beginnings, Change, Kind, Read, Write } from './random-requests.ts';

/** Sends requests to the app of a random model, and compares each response with what the evaluator expects. */

type App = Awaited<ReturnType<typeof openAccessApp>>;

const root: Caller = { subject: 'root', roles: ['root', 'operator'], claims: {} };

const FIELDS: Readonly<Record<Kind, readonly string[]>> = {
  tasks: ['team', 'owner', 'id', 'state', 'day', 'rank', 'flag', 'note', 'code', 'size'],
  notes: ['team', 'owner', 'id', 'day', 'state', 'rank', 'number', 'text'],
};

const pick = (row: Row, fields: readonly string[]): Row =>
  Object.fromEntries(fields.filter((field) => row[field] !== undefined).map((field) => [field, row[field]]));
const sorted = (row: Row): string => JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)));

class Mismatch extends Error {}

export class Proof {
  readonly people: Row[] = [];
  readonly members: Row[] = [];
  readonly rows: Readonly<Record<Kind, Map<string, Row>>> = { tasks: new Map(), notes: new Map() };
  readonly rules: Readonly<Record<Kind, Rules>>;
  readonly keys: Readonly<Record<Kind, readonly string[]>>;
  readonly #plan: Plan;
  readonly #app: App;
  readonly #model: LinkedModel;
  readonly #worker: ReturnType<typeof createQueueWorker>;
  #known = new Map<string, unknown>();
  cases = 0;
  decisions = 0;

  constructor(plan: Plan, app: App, model: LinkedModel) {
    this.#plan = plan;
    this.#app = app;
    this.#model = model;
    this.#worker = createQueueWorker(
      { engine: app.engine, entities: model.list, log: console },
      { lastLogged: () => '' },
    );
    this.rules = { tasks: rulesOf(plan, plan.tasks), notes: rulesOf(plan, plan.notes) };
    const { all } = keyOf(plan);
    this.keys = { tasks: all, notes: [...all, 'number'] };
  }

  async begin({ tasks, members, people }: typeof beginnings extends fc.Arbitrary<infer T> ? T : never): Promise<void> {
    for (const [person, team] of Object.entries(people)) await this.#addPerson(person, team);
    for (const member of members) {
      this.members.push(member);
      this.#expect(await this.#app.ask(root, 'POST', 'members', member), 201, 'members');
    }
    await this.#createAll('tasks', tasks);
    await this.#createAll(
      'notes',
      tasks.filter(({ rank }) => Number(rank) > 0),
    );
  }

  async #createAll(kind: Kind, given: readonly Row[]): Promise<void> {
    const rows = given.map((row) => this.#body(kind, row));
    // By the app itself: no caller may name other owners.
    const outcomes = await writeBatch(
      this.#app.engine,
      this.#entityOf(kind),
      rows.map((create) => ({ create })),
    );
    for (const [at, row] of rows.entries())
      if (!(outcomes[at] instanceof Error)) this.rows[kind].set(this.#idOf(kind, row), row);
    await this.#worker.settle();
  }

  #entityOf(kind: Kind): Entity {
    const entity = this.#model.list.find(({ name }) => name === kind);
    if (!entity) throw new Error(kind);
    return entity;
  }

  async #addPerson(person: string, team: string): Promise<void> {
    const row = { person, team, email: `${person}@x` };
    const { status } = await this.#app.ask(root, 'PUT', `people/${person}`, row);
    if (status !== 200 && status !== 201) throw new Mismatch(`people: ${status}`);
    const at = this.people.findIndex((each) => each.person === person);
    this.people.splice(at < 0 ? this.people.length : at, 1, row);
  }

  #expect({ status, text }: Pick<Reply, 'status' | 'text'>, expected: number | readonly number[], what: string): void {
    this.cases += 1;
    if (![expected].flat().includes(status)) throw new Mismatch(`${status} in place of ${expected}: ${text}\n${what}`);
  }

  #same(found: unknown, expected: unknown, what: string): void {
    const [one, other] = [found, expected].map((value) =>
      Array.isArray(value) ? JSON.stringify(value.map((row) => sorted(row))) : sorted(value as Row),
    );
    if (one !== other) throw new Mismatch(`${one} in place of ${other}\n${what}`);
  }

  #may(caller: Caller, kind: Kind, action: Action, row: Row): boolean {
    this.decisions += 1;
    return may(this, caller, this.rules[kind], action, row);
  }

  #idOf(kind: Kind, row: Row): string {
    return JSON.stringify(pick(row, this.keys[kind]));
  }

  #pathOf(kind: Kind, row: Row): string {
    return [kind, ...this.keys[kind].map((field) => String(row[field]))].join('/');
  }

  // Reads

  /** What an index needs, and how it lists. */
  #lists(): Record<string, List & { readonly path: readonly string[]; readonly isOne?: boolean }> {
    const { all, inRow } = keyOf(this.#plan);
    const without = (field: string) => all.filter((each) => each !== field);
    const { inPartition } = keyOf(this.#plan);
    const byOwner = { inPartition: ['owner'], isWhole: true, path: ['owner', ...without('owner')] };
    const own = { inPartition, isWhole: true, path: [] };
    return {
      state: { ...own, first: 'state', path: [...inPartition, 'state', ...inRow] },
      owner: { ...byOwner, first: without('owner')[0] },
      ownerKeys: { ...byOwner, first: without('owner')[0], looksUp: true },
      ownerSome: { ...byOwner, first: without('owner')[0], fields: [...all, 'state', 'rank', 'owner'] },
      stateRank: { inPartition: ['state'], isWhole: true, first: 'rank', path: ['state', 'rank', ...all] },
      hash: { inPartition: ['note'], isWhole: true, first: 'note', path: ['note', ...all] },
      code: { inPartition: ['code'], isWhole: true, first: undefined, path: ['code'], isOne: true },
      notes: { ...own, first: 'note', looksUp: true, path: [...inPartition, 'note'] },
      noteLists: { inPartition: ['owner'], isWhole: true, first: 'note', looksUp: true, path: ['owner', 'note'] },
      all: { inPartition: [], isWhole: true, first: all[0], path: all },
    };
  }

  /** The read as `POST /query` has it, and the rows that a caller sees of what the root sees. */
  #toQuery(read: Read): { readonly body: unknown; readonly list?: List; readonly isOne?: boolean } | undefined {
    const { kind, row } = read;
    const { all, inPartition, inRow } = keyOf(this.#plan);
    const selected = read.select?.filter((field) => FIELDS[kind].includes(field)) ?? [];
    const isWhere = read.where && FIELDS[kind].includes(read.where);
    const where = isWhere && read.where ? { where: { [read.where]: row[read.where] } } : {};
    const chosen = selected.length > 0 ? { select: selected } : {};
    const bound = read.bound ? { [read.bound]: String(row[inRow[0] ?? 'id']) } : {};
    if (read.read === 'get') return { body: { get: kind, key: pick(row, this.keys[kind]), ...chosen } };
    if (read.read === 'include') return { body: { get: 'tasks', key: pick(row, all), include: ['notes'] } };
    if (read.read === 'range') {
      const { prefix: _, ...ends } = bound as { prefix?: string };
      return {
        body: { range: kind, partition: pick(row, inPartition), ...ends, ...chosen, ...where, top: 60 },
        list: { inPartition, isWhole: true, first: inRow[0] },
      };
    }
    if (read.read === 'list' && this.#plan.indexes.includes('all'))
      return {
        body: { list: 'tasks', ...chosen, ...(isWhere && kind === 'tasks' ? where : {}) },
        list: this.#lists().all as List,
      };
    if (read.read !== 'by' || this.#plan.indexes.length === 0) return undefined;
    const name = this.#plan.indexes[read.index % this.#plan.indexes.length] ?? '';
    const list = this.#lists()[name];
    if (!list) return undefined;
    const least = list.isOne ? 1 : list.inPartition.length;
    const path = [...new Set(list.path.slice(0, least + read.depth))];
    if (path.some((field) => row[field] === undefined)) return undefined;
    const by = { by: name, entity: 'tasks', values: pick(row, path) };
    if (list.isOne) return { body: { ...by, ...(kind === 'tasks' ? chosen : {}) }, isOne: true };
    const next = list.path[path.length];
    const ofIndex = read.bound && next ? { [read.bound]: next === 'rank' ? row.rank : String(row[next]) } : {};
    const isCopied = selected.every((field) => list.fields?.includes(field) ?? true);
    const options = kind === 'tasks' ? { ...(isCopied ? chosen : {}), ...where } : {};
    return { body: { ...by, ...ofIndex, ...options, top: 60 }, list };
  }

  async #asRoot(reads: Readonly<Record<string, unknown>>): Promise<Record<string, QueryResult>> {
    const missing = Object.entries(reads).filter(([, body]) => !this.#known.has(JSON.stringify(body)));
    for (let at = 0; at < missing.length; at += 15) {
      const some = missing.slice(at, at + 15);
      const asked = { reads: Object.fromEntries(some) };
      const reply = await this.#app.ask(root, 'POST', 'query', asked);
      if (reply.status !== 200) throw new Mismatch(`root: ${reply.status} ${reply.text}`);
      for (const [name, body] of some) this.#known.set(JSON.stringify(body), reply.body.reads[name]);
    }
    return Object.fromEntries(
      Object.entries(reads).map(([name, body]) => [name, this.#known.get(JSON.stringify(body)) as QueryResult]),
    );
  }

  /** Many reads in one request. */
  async query(caller: Caller, reads: readonly Read[]): Promise<void> {
    const asked = reads.flatMap((read, at) => {
      const query = this.#toQuery(read);
      return query ? [[`r${at}`, { ...query, read }] as const] : [];
    });
    if (asked.length === 0) return;
    const bodies = Object.fromEntries(asked.map(([name, { body }]) => [name, body]));
    const whole = asked.map(([name, { body }]) => [name, omit(body as Row, 'select')] as const);
    const all = await this.#asRoot(Object.fromEntries(whole));
    const reply = await this.#app.ask(caller, 'POST', 'query', { reads: bodies });
    const isReader = hasRole(caller, this.rules.tasks, 'read') || hasRole(caller, this.rules.notes, 'read');
    if (!isReader) return this.#expect(reply, 403, 'query');
    this.#expect(reply, 200, 'query');
    for (const [name, { body, list, isOne, read }] of asked) {
      const result = reply.body.reads[name] as QueryResult;
      const what = `${JSON.stringify(caller)} ${JSON.stringify(body)} of ${JSON.stringify(this.rules)}`;
      this.#compare(caller, { read, list, isOne, result, all: all[name] as QueryResult, what, body: body as Row });
    }
  }

  #compare(
    caller: Caller,
    {
      read,
      list,
      isOne,
      result,
      all,
      what,
      body,
    }: {
      read: Read;
      list?: List | undefined;
      isOne?: boolean | undefined;
      result: QueryResult;
      all: QueryResult;
      what: string;
      body: Row;
    },
  ): void {
    const text = JSON.stringify(result);
    const expect = (status: number) => this.#expect({ status: result.status, text }, status, what);
    const kind: Kind =
      read.read === 'include' || (list === undefined && isOne) || 'by' in body || 'list' in body ? 'tasks' : read.kind;
    const rules = this.rules[kind];
    const select = body.select as readonly string[] | undefined;
    const shown = (row: Row) => (select ? pick(row, select) : row);
    if (list) {
      const rows = all.items?.map((row) => this.#full(kind, row)) ?? [];
      this.decisions += rows.length;
      const within = listed(this, caller, rules, list, rows);
      if (!within) {
        this.#expect({ status: result.status, text }, all.status === 400 ? [400, 403] : 403, what);
        return;
      }
      if (all.status === 400) {
        expect(400);
        return;
      }
      expect(200);
      const kept = all.items?.filter((_, at) => within.includes(rows[at] as Row)) ?? [];
      this.#same(result.items, kept.map(shown), what);
      return;
    }
    if (!hasRole(caller, rules, 'read')) {
      expect(403);
      return;
    }
    if (read.read === 'include' && !hasRole(caller, this.rules.notes, 'read')) {
      expect(403);
      return;
    }
    if (all.status === 404) {
      expect(404);
      return;
    }
    const { notes, ...own } = all.entity as Row;
    const row = this.#full(kind, own);
    if (!this.#may(caller, kind, 'read', row)) {
      expect(404);
      return;
    }
    expect(200);
    if (read.read !== 'include') {
      this.#same(result.entity, shown(own), what);
      return;
    }
    const { notes: found, ...values } = result.entity as Row;
    this.#same(values, own, what);
    const children = (notes as Row[]).filter((note) => this.#may(caller, 'notes', 'read', note));
    this.#same(found, children, `${what} children`);
  }

  #full(kind: Kind, row: Row): Row {
    const found = this.rows[kind].get(this.#idOf(kind, row));
    if (!found) throw new Mismatch(`${kind}: an unknown row ${JSON.stringify(row)}`);
    return found;
  }

  /** One GET, which may be conditional. */
  async get(caller: Caller, { kind, row, etag }: Read): Promise<void> {
    const path = this.#pathOf(kind, row);
    const found = this.rows[kind].get(this.#idOf(kind, row));
    const known = etag && found ? (await this.#app.ask(root, 'GET', path)).headers.get('etag') : undefined;
    const headers = known ? { 'if-none-match': known } : {};
    const reply = await this.#app.ask(caller, 'GET', path, undefined, headers);
    const what = `GET ${path} by ${JSON.stringify(caller)} of ${JSON.stringify(this.rules)}`;
    if (!hasRole(caller, this.rules[kind], 'read')) return this.#expect(reply, 403, what);
    if (found && this.#may(caller, kind, 'read', found)) {
      this.#expect(reply, known ? 304 : 200, what);
      if (!known) this.#same(reply.body, found, what);
      return;
    }
    this.#expect(reply, 404, what);
  }

  /** What an operator is told of a row and a caller. */
  async why(caller: Caller, { kind, row }: Read): Promise<void> {
    const found = this.rows[kind].get(this.#idOf(kind, row));
    const question = { entity: kind, key: pick(row, this.keys[kind]), caller };
    const reply = await this.#app.ask(root, 'POST', 'operations/why', question);
    const what = `why ${JSON.stringify(question)} of ${JSON.stringify(this.rules)} at ${JSON.stringify(found)}`;
    if (!found) return this.#expect(reply, 404, what);
    this.#expect(reply, 200, what);
    for (const action of ACTIONS) {
      const { allowed, alternatives } = reply.body[action];
      const isAllowed = this.#may(caller, kind, action, found);
      const isTold = alternatives.map(
        ({ hasRole: has, terms }: { hasRole: boolean; terms: { holds: boolean }[] }) =>
          has && terms.every(({ holds }) => holds),
      );
      const allows = alternatives.map((one: { allows: boolean }) => one.allows);
      if (allowed !== isAllowed || allowed !== isTold.includes(true) || isTold.join() !== allows.join())
        throw new Mismatch(`${action}: ${reply.text}\n${what}`);
    }
  }

  /** A caller gets the same responses if all that is hidden is not there. This deletes the hidden rows. */
  async hide(caller: Caller, reads: readonly Read[]): Promise<void> {
    const asked = reads.flatMap((read, at) => {
      const query = this.#toQuery(read);
      return query ? [[`r${at}`, query.body] as const] : [];
    });
    const isHidden = (kind: Kind) => (row: Row) => !this.#may(caller, kind, 'read', row);
    const tasks = [...this.rows.tasks.values()].filter(isHidden('tasks'));
    const notes = [...this.rows.notes.values()];
    const paths = [
      ...tasks.slice(0, 3).map((row) => this.#pathOf('tasks', row)),
      ...notes
        .filter(isHidden('notes'))
        .slice(0, 3)
        .map((row) => this.#pathOf('notes', row)),
      ...tasks.slice(0, 2).map(({ code }) => `tasks/by/code/${code}`),
    ];
    const beyond = tasks.filter((row) => !this.#may(caller, 'tasks', 'update', row)).slice(0, 2);
    const ask = async () => {
      const body = { reads: Object.fromEntries(asked) };
      const gets: (readonly [string, unknown])[] = [];
      for (const path of paths) gets.push([path, traceOf(await this.#app.ask(caller, 'GET', path))]);
      for (const row of beyond) {
        const path = this.#pathOf('tasks', row);
        const condition = { 'if-match': '"other"' };
        const patched = await this.#app.ask(caller, 'PATCH', path, { size: 3 });
        const put = await this.#app.ask(caller, 'PUT', path, row, condition);
        const answers = [patched, put];
        if (!this.#may(caller, 'tasks', 'create', row)) answers.push(await this.#app.ask(caller, 'PUT', path, row));
        if (!this.#may(caller, 'tasks', 'delete', row)) answers.push(await this.#app.ask(caller, 'DELETE', path));
        gets.push([`writes of ${path}`, answers.map(traceOf)]);
      }
      const results = await this.#app.ask(caller, 'POST', 'query', body);
      const explained = await this.#app.ask(caller, 'POST', 'query?explain=true', body);
      const parts = Object.entries<unknown>(results.body.reads ?? {}).map(([name, result]) => [
        name,
        withoutEtag(result),
      ]);
      const steps: unknown[] = explained.body.steps ?? [];
      // Concurrent reads take their steps in any order.
      return { ...Object.fromEntries([...parts, ...gets]), steps: steps.map((step) => JSON.stringify(step)).sort() };
    };
    await ask();
    const before = await ask();
    const idOf = (row: Row) => this.#idOf('tasks', row);
    const shown = new Set(notes.filter((note) => !isHidden('notes')(note)).map(idOf));
    for (const note of notes.filter(isHidden('notes')))
      await this.#app.ask(root, 'DELETE', this.#pathOf('notes', note));
    for (const task of tasks.filter((each) => !shown.has(idOf(each))))
      await this.#app.ask(root, 'DELETE', this.#pathOf('tasks', task));
    await ask();
    const after = await ask();
    this.cases += asked.length;
    for (const [name, result] of Object.entries(before)) {
      const body = Object.fromEntries(asked)[name];
      const what = `${JSON.stringify(caller)} ${JSON.stringify(body)} of ${JSON.stringify(this.rules)}`;
      if (JSON.stringify(result) !== JSON.stringify(after[name]))
        throw new Mismatch(
          `${JSON.stringify(result)} with hidden rows, ${JSON.stringify(after[name])} without\n${what}`,
        );
    }
  }

  /** The pages of a list, each with one entity, and the continuation of another caller. */
  async pages(caller: Caller, read: Read): Promise<void> {
    const { inPartition, inRow } = keyOf(this.#plan);
    const { kind, row } = read;
    const path = [kind, ...inPartition.map((field) => String(row[field]))].join('/');
    const list = { inPartition, isWhole: true, first: inRow[0] };
    const everything = await this.#app.ask(root, 'GET', `${path}?top=100`);
    const rows = (everything.body.items as Row[]).map((each) => this.#full(kind, each));
    const within = listed(this, caller, this.rules[kind], list, rows);
    const what = `pages of ${path} by ${JSON.stringify(caller)} of ${JSON.stringify(this.rules)}`;
    let next: string | undefined = `${path}?top=5`;
    const found: Row[] = [];
    while (next) {
      const reply: Reply = await this.#app.ask(caller, 'GET', next);
      if (!within) return this.#expect(reply, 403, what);
      this.#expect(reply, 200, what);
      found.push(...(reply.body.items as Row[]));
      next = /<[^>]*\/api\/([^>]*)>/.exec(reply.headers.get('link') ?? '')?.[1];
      if (next && found.length <= 5) {
        const other = await this.#app.ask({ ...caller, subject: 'eve' }, 'GET', next);
        this.#expect(other, 400, `continuation of another caller, ${what}`);
      }
      if (found.length > rows.length) throw new Mismatch(`${what}: too many`);
    }
    this.#same(found, within, what);
  }

  /** The pages of all that a caller reaches, if the rules name its partitions: nothing else, nothing twice, and with one role everything. */
  async mine(caller: Caller, kind: Kind): Promise<void> {
    const mine = listMine(this.#entityOf(kind));
    if (!mine || keyOf(this.#plan).inPartition.length === 0 || (kind === 'tasks' && this.#plan.indexes.includes('all')))
      return;
    const what = `GET ${kind} by ${JSON.stringify(caller)} of ${JSON.stringify(this.rules)}`;
    const [role, ...others] = caller.roles;
    const isRefused = !caller.roles.some((one) => mine.roles?.includes(one));
    const reachesEveryRow = reachesAll(this, caller, this.rules[kind], 'read', {});
    const found: Row[] = [];
    for (let next: string | undefined = `${kind}?top=7`; next; ) {
      const reply: Reply = await this.#app.ask(caller, 'GET', next);
      if (isRefused || reachesEveryRow) return this.#expect(reply, 403, what);
      this.#expect(reply, 200, what);
      found.push(...(reply.body.items as Row[]));
      next = /<[^>]*\/api\/([^>]*)>/.exec(reply.headers.get('link') ?? '')?.[1];
      if (found.length > this.rows[kind].size) throw new Mismatch(`${what}: too many`);
    }
    const inOrder = (rows: readonly Row[]) =>
      rows.toSorted((a, b) => (this.#idOf(kind, a) < this.#idOf(kind, b) ? -1 : 1));
    const listing = { read: this.rules[kind].read.filter(({ lists }) => lists !== 'none') };
    const within = [...this.rows[kind].values()].filter((row) => {
      this.decisions += 1;
      return may(this, caller, { ...this.rules[kind], ...listing }, 'read', row);
    });
    const isAll = role !== undefined && others.length === 0;
    const expected = isAll
      ? within
      : within.filter((row) => found.some((one) => this.#idOf(kind, one) === this.#idOf(kind, row)));
    this.#same(inOrder(found), inOrder(expected), what);
  }

  async total(caller: Caller, { row, index, depth }: Read): Promise<void> {
    const names = this.#plan.totals;
    const name = names[index % Math.max(1, names.length)];
    if (name === undefined) return;
    const groups: Readonly<Record<string, readonly string[]>> = {
      team: ['team'],
      owner: ['owner', 'state'],
      month: ['team', 'day'],
      rank: ['state', 'team'],
    };
    const group = groups[name] ?? [];
    const given = depth === 0 ? group.slice(0, 1) : group;
    const text = (field: string) => (field === 'day' ? String(row.day).slice(0, 7) : String(row[field]));
    const path = ['tasks', 'by', 'totals', name, ...given.map(text)].join('/');
    const paths = [path, path.replace('/by/totals/', '/totals/')];
    const all = await this.#app.ask(root, 'GET', paths[1] ?? '');
    const reply = await this.#app.ask(caller, 'GET', paths[1] ?? '');
    const what = `GET ${paths[1]} by ${JSON.stringify(caller)} of ${JSON.stringify(this.rules)}`;
    if (!hasRole(caller, this.rules.tasks, 'read')) return this.#expect(reply, 403, what);
    const known = pick(
      row,
      given.filter((field) => field !== 'day'),
    );
    if (!reachesAll(this, caller, this.rules.tasks, 'read', known)) return this.#expect(reply, 403, what);
    this.#expect(reply, all.status, what);
    if (reply.text !== all.text) throw new Mismatch(`${what}: ${reply.text} in place of ${all.text}`);
    this.decisions += 1;
  }

  /** Compares what is stored with what the writes should have left. */
  async check(): Promise<void> {
    for (const kind of ['tasks', 'notes'] as const) {
      const { body } = await this.#app.ask(root, 'GET', `operations/scan/${kind}?top=1000`);
      const found = (body.items as Row[]).map(sorted).sort();
      const expected = [...this.rows[kind].values()].map(sorted).sort();
      if (found.join() !== expected.join()) throw new Mismatch(`${kind}: ${found} in place of ${expected}`);
    }
  }

  // Writes

  async write(caller: Caller, write: Write): Promise<void> {
    this.#known = new Map();
    await this.#send(caller, write);
    // A failed write leaves the claim of a value that its entity has already to the queue.
    await this.#worker.settle();
  }

  async #send(caller: Caller, write: Write): Promise<void> {
    const { kind, action } = write;
    if (write.write === 'person') return this.#addPerson(String(action.row.owner), String(action.row.team));
    if (write.write === 'member') return this.#join(write);
    if (write.write === 'create') return this.#create(caller, kind, action.row);
    if (write.write === 'batch') return this.#batch(caller, write);
    if (write.write === 'range') return this.#deleteRange(caller, write);
    return this.#change(caller, write, write.write);
  }

  async #join({ action: { row }, level, isMinimal }: Write): Promise<void> {
    const { team, owner: user } = row;
    const at = this.members.findIndex((each) => each.team === team && each.user === user);
    if (at >= 0) this.members.splice(at, 1);
    if (isMinimal) {
      await this.#app.ask(root, 'DELETE', `members/${team}/${user}`);
      return;
    }
    this.members.push({ team, user, level });
    this.#expect(
      await this.#app.ask(root, 'PUT', `members/${team}/${user}`, { team, user, level }),
      [200, 201],
      'join',
    );
  }

  #body(kind: Kind, row: Row): Row {
    return pick(row, FIELDS[kind]);
  }

  /** What is sent of a row: if a create takes the owner from the caller, some bodies are without. */
  #sent(kind: Kind, row: Row): Row {
    const body = this.#body(kind, row);
    return this.#leavesOut(kind, row) ? omit(body, 'owner') : body;
  }

  #leavesOut(kind: Kind, { flag }: Row): boolean {
    return this.#isSet(kind) && flag === true && !this.keys[kind].includes('owner');
  }

  #isSet(kind: Kind): boolean {
    return this.#plan.isOwnerSet && kind === 'tasks';
  }

  /** True if the owner is neither the caller who creates the row, nor the owner before. */
  #namesAnother(caller: Caller, kind: Kind, { owner }: Row, before?: Row): boolean {
    return this.#isSet(kind) && owner !== (before ? before.owner : caller.subject);
  }

  /** Undefined if the row can be created, otherwise the status of the error. */
  #whyNotCreate(caller: Caller, kind: Kind, row: Row): number | undefined {
    if (!this.#may(caller, kind, 'create', row) || this.#namesAnother(caller, kind, row)) return 403;
    if (kind === 'notes' && !this.#hasParent(caller, row)) return 400;
    if (this.rows[kind].has(this.#idOf(kind, row))) return 409;
    return this.#isTaken(kind, row) ? 409 : undefined;
  }

  #hasParent(caller: Caller, row: Row): boolean {
    const parent = this.rows.tasks.get(this.#idOf('tasks', row));
    return parent !== undefined && this.#may(caller, 'tasks', 'read', parent);
  }

  #isTaken(kind: Kind, row: Row): boolean {
    if (kind !== 'tasks' || row.code === undefined || !this.#plan.indexes.includes('code')) return false;
    const id = this.#idOf(kind, row);
    return [...this.rows.tasks].some(([other, { code }]) => code === row.code && other !== id);
  }

  #shown(caller: Caller, kind: Kind, row: Row): Row {
    return this.#may(caller, kind, 'read', row) ? row : pick(row, this.keys[kind]);
  }

  async #create(caller: Caller, kind: Kind, given: Row): Promise<void> {
    const sent = this.#sent(kind, given);
    const row = this.#leavesOut(kind, given) ? { ...sent, owner: caller.subject } : sent;
    const reply = await this.#app.ask(caller, 'POST', kind, sent);
    const what = `POST ${JSON.stringify(sent)} by ${JSON.stringify(caller)} of ${JSON.stringify(this.rules)}`;
    if (!hasRole(caller, this.rules[kind], 'create')) return this.#expect(reply, 403, what);
    const error = this.#whyNotCreate(caller, kind, row);
    if (error !== undefined) return this.#expect(reply, error === 409 && kind === 'notes' ? [409] : error, what);
    this.#expect(reply, 201, what);
    this.#same(reply.body, this.#shown(caller, kind, row), what);
    this.rows[kind].set(this.#idOf(kind, row), row);
  }

  /** The status of a change, which is applied. */
  #apply(
    caller: Caller,
    kind: Kind,
    { does, row: given, changed }: Change,
    condition: Write['condition'] = 'none',
  ): { readonly status: number; readonly after?: Row | undefined } {
    const rules = this.rules[kind];
    const id = this.#idOf(kind, given);
    const before = this.rows[kind].get(id);
    const action = does === 'delete' ? 'delete' : 'update';
    const canSee = before !== undefined && this.#may(caller, kind, 'read', before);
    const canChange = before !== undefined && this.#may(caller, kind, action, before);
    const isThere = does === 'put' && condition !== 'new' && (canSee || canChange);
    const left = this.#leavesOut(kind, given) ? { owner: isThere ? before?.owner : caller.subject } : {};
    const row = { ...this.#body(kind, given), ...left };
    if (does === 'create') {
      const error = this.#whyNotCreate(caller, kind, row);
      if (error !== undefined) return { status: error };
      this.rows[kind].set(id, row);
      return { status: 201, after: row };
    }
    if (does === 'put' && condition === 'new') {
      if (!this.#may(caller, kind, 'create', row) || this.#namesAnother(caller, kind, row)) return { status: 403 };
      if (kind === 'notes' && !this.#hasParent(caller, row)) return { status: 400 };
      if (before) return { status: 412 };
    }
    if (does === 'put' && !canChange && !canSee) {
      // As if there were none.
      if (condition === 'right' || condition === 'wrong') return { status: 412 };
      const error = this.#whyNotCreate(caller, kind, row);
      if (error !== undefined) return { status: error };
      this.rows[kind].set(id, row);
      return { status: 201, after: row };
    }
    if (!before) return { status: 404 };
    if (!canChange) return { status: canSee ? 403 : 404 };
    if (condition === 'wrong') return { status: 412 };
    if (does === 'delete') {
      this.rows[kind].delete(id);
      if (kind === 'tasks')
        for (const [other, note] of this.rows.notes)
          if (this.#idOf('tasks', note) === id) this.rows.notes.delete(other);
      return { status: 204 };
    }
    const after = does === 'put' ? row : this.#patched(kind, before, given, changed);
    if (!may(this, caller, rules, 'update', after)) return { status: 403 };
    if (this.#namesAnother(caller, kind, after, before)) return { status: 403 };
    if (this.#isTaken(kind, after)) return { status: 409 };
    this.rows[kind].set(id, after);
    return { status: 200, after };
  }

  #patch(kind: Kind, row: Row, changed: Change['changed']): Row {
    const fields = changed.filter((field) => FIELDS[kind].includes(field) && !this.keys[kind].includes(field));
    const optional = ['note', 'code'];
    return Object.fromEntries(
      fields.flatMap((field) =>
        row[field] === undefined ? (optional.includes(field) ? [[field, null]] : []) : [[field, row[field]]],
      ),
    );
  }

  #patched(kind: Kind, before: Row, row: Row, changed: Change['changed']): Row {
    const merged = { ...before, ...this.#patch(kind, row, changed) };
    return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null));
  }

  #canRemove(caller: Caller, kind: Kind, given: Row): boolean {
    if (kind === 'notes') return true;
    const known = pick(given, keyOf(this.#plan).all);
    return reachesAll(this, caller, this.rules.notes, 'delete', known);
  }

  async #change(caller: Caller, write: Write, does: 'put' | 'patch' | 'delete'): Promise<void> {
    const { kind, action: given, condition, isMinimal } = write;
    const path = this.#pathOf(kind, given.row);
    const method = { put: 'PUT', patch: 'PATCH', delete: 'DELETE' } as const;
    const current = condition === 'right' ? (await this.#app.ask(root, 'GET', path)).headers.get('etag') : undefined;
    const headers: Record<string, string> = {
      ...(condition === 'right' ? { 'if-match': current ?? '"none"' } : {}),
      ...(condition === 'wrong' ? { 'if-match': '"wrong"' } : {}),
      ...(condition === 'new' && does === 'put' ? { 'if-none-match': '*' } : {}),
      ...(does === 'patch' && isMinimal ? { prefer: 'return=minimal' } : {}),
    };
    const body = does === 'put' ? this.#sent(kind, given.row) : this.#patch(kind, given.row, given.changed);
    const reply = await this.#app.ask(caller, method[does], path, does === 'delete' ? undefined : body, headers);
    const what = `${method[does]} ${path} ${JSON.stringify(body)} ${JSON.stringify(headers)} by ${JSON.stringify(caller)} of ${JSON.stringify(this.rules)} at ${JSON.stringify(this.rows[kind].get(this.#idOf(kind, given.row)))}`;
    const actions = { put: ['update', 'create'], patch: ['update'], delete: ['delete'] } as const;
    if (!hasRole(caller, this.rules[kind], ...actions[does])) return this.#expect(reply, 403, what);
    if (does === 'delete' && !this.#canRemove(caller, kind, given.row)) return this.#expect(reply, 403, what);
    const missing = condition === 'right' && !current ? 'wrong' : condition;
    const used = missing === 'new' && does !== 'put' ? 'none' : missing;
    const { status, after } = this.#apply(caller, kind, { ...given, does }, used);
    const accepted = status === 200 || status === 201 ? [200, 201, 204] : status;
    this.#expect(reply, accepted, what);
    if (after && reply.status !== 204) this.#same(reply.body, this.#shown(caller, kind, after), what);
  }

  async #batch(caller: Caller, { kind, actions, isAtomic }: Write): Promise<void> {
    const sent = actions.map(({ does, row, changed }) => ({
      [does]: {
        ...pick(row, this.keys[kind]),
        ...(does === 'patch' ? this.#patch(kind, row, changed) : does === 'delete' ? {} : this.#sent(kind, row)),
      },
    }));
    const reply = await this.#app.ask(caller, 'POST', `${kind}/batch`, { actions: sent, atomic: isAtomic });
    const what = `batch ${isAtomic} ${JSON.stringify(sent)} by ${JSON.stringify(caller)} of ${JSON.stringify(this.rules)} at ${JSON.stringify([...this.rows[kind].values()])}`;
    if (!hasRole(caller, this.rules[kind], 'create', 'update', 'delete')) return this.#expect(reply, 403, what);
    if (actions.some(({ does, row }) => does === 'delete' && !this.#canRemove(caller, kind, row)))
      return this.#expect(reply, 403, what);
    const saved = [new Map(this.rows.tasks), new Map(this.rows.notes)] as const;
    const rollBack = () => {
      for (const [at, name] of (['tasks', 'notes'] as const).entries()) {
        this.rows[name].clear();
        for (const [id, row] of saved[at] ?? []) this.rows[name].set(id, row);
      }
    };
    const ids = actions.map(({ row }) => this.#idOf(kind, row));
    if (isAtomic && (reply.status === 400 || new Set(ids).size < ids.length)) {
      // Not in one partition, or two on one entity: nothing may have changed.
      this.cases += 1;
      if (reply.status < 400) throw new Mismatch(`${what}: ${reply.status}`);
      return;
    }
    const results = actions.map((change) => this.#apply(caller, kind, change));
    const failed = results.find(({ status }) => status >= 400);
    if (isAtomic && failed) {
      rollBack();
      if (reply.status < 400) throw new Mismatch(`${reply.status} ${reply.text} in place of ${failed.status}\n${what}`);
      this.cases += 1;
      return;
    }
    this.#expect(reply, 200, what);
    const found = (reply.body.results as { status: number }[]).map(({ status }) => (status < 400 ? 200 : status));
    const expected = results.map(({ status }) => (status < 400 ? 200 : status));
    if (found.join() !== expected.join()) throw new Mismatch(`${reply.text} in place of ${expected}\n${what}`);
    this.cases += found.length;
  }

  async #deleteRange(caller: Caller, { kind, action: { row } }: Write): Promise<void> {
    const { inPartition } = keyOf(this.#plan);
    const path = [kind, ...inPartition.map((field) => String(row[field]))].join('/');
    const reply = await this.#app.ask(caller, 'DELETE', `${path}?all=true`);
    const what = `DELETE ${path}?all=true by ${JSON.stringify(caller)} of ${JSON.stringify(this.rules)} at ${JSON.stringify([...this.rows[kind].values()])}`;
    if (!hasRole(caller, this.rules[kind], 'delete')) return this.#expect(reply, 403, what);
    const known = pick(row, inPartition);
    if (kind === 'tasks' && !reachesAll(this, caller, this.rules.notes, 'delete', known))
      return this.#expect(reply, 403, what);
    this.#expect(reply, [200, 204], what);
    const inRange = (each: Row) => inPartition.every((field) => each[field] === row[field]);
    let deleted = 0;
    for (const [, each] of [...this.rows[kind]].filter(([, value]) => inRange(value)))
      if (this.#may(caller, kind, 'delete', each)) {
        this.#apply(caller, kind, { does: 'delete', row: each, changed: [] });
        deleted += 1;
      }
    if (reply.body && reply.body.deleted !== deleted)
      throw new Mismatch(`${reply.text} in place of ${deleted}\n${what}`);
  }
}

interface QueryResult {
  readonly status: number;
  readonly items?: readonly Row[];
  readonly entity?: Row;
}

function omit(row: Row, field: string): Row {
  const { [field]: _, ...others } = row;
  return others;
}

function withoutEtag(result: unknown): unknown {
  return typeof result === 'object' && result !== null ? omit(result as Row, 'etag') : result;
}

/** What a response says besides the key. */
function traceOf({ status, headers, text }: Reply): Row {
  const names = [...headers].map(([name, value]) =>
    name === 'server-timing' ? `${name}: ${/desc="(\d+)/.exec(value)?.[1]}` : `${name}: ${value}`,
  );
  return { status, headers: names.join('\n'), text: text.replaceAll(/\\"[^"\\]*\\"/g, '""') };
}
