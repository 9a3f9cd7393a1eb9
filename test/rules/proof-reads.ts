import type { Reply } from '../access-app.ts';
import { apiCalls } from '../kit/api.ts';
import { type Caller, hasRole, type List, listed, may, type Row, reachesAll } from './evaluator.ts';
import { FIELDS, Mismatch, omit, pick, root, type World } from './proof-world.ts';
import { ACTIONS, keyOf } from './random-model.ts';
import type { Kind, Read } from './random-requests.ts';

/** Sends reads to the app of a random model, and compares each response with what the evaluator expects. */
export class Reads {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** What an index needs, and how it lists. */
  #lists(): Record<string, List & { readonly path: readonly string[]; readonly isOne?: boolean }> {
    const { all, inRow } = keyOf(this.#world.plan);
    const without = (field: string) => all.filter((each) => each !== field);
    const { inPartition } = keyOf(this.#world.plan);
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
      zone: { inPartition: ['zone'], isWhole: true, first: all[0], path: ['zone', ...all] },
      all: { inPartition: [], isWhole: true, first: all[0], path: all },
    };
  }

  /** The read as `POST /query` has it, and the rows that a caller sees of what the root sees. */
  #toQuery(read: Read): { readonly body: unknown; readonly list?: List; readonly isOne?: boolean } | undefined {
    const { kind } = read;
    const row = this.#world.derive(read.row);
    const { all, inPartition, inRow } = keyOf(this.#world.plan);
    const selected = read.select?.filter((field) => FIELDS[kind].includes(field)) ?? [];
    const isWhere =
      read.where && ((read.where === 'zone' && this.#world.plan.isDerived) || FIELDS[kind].includes(read.where));
    const where = isWhere && read.where ? { where: { [read.where]: row[read.where] } } : {};
    const chosen = selected.length > 0 ? { select: selected } : {};
    const bound = read.bound ? { [read.bound]: String(row[inRow[0] ?? 'id']) } : {};
    if (read.read === 'get') return { body: { get: kind, key: pick(row, this.#world.keys[kind]), ...chosen } };
    if (read.read === 'include') return { body: { get: 'tasks', key: pick(row, all), include: ['notes'] } };
    if (read.read === 'range') {
      const { prefix: _, ...ends } = bound as { prefix?: string };
      return {
        body: { range: kind, partition: pick(row, inPartition), ...ends, ...chosen, ...where, top: 60 },
        list: { inPartition, isWhole: true, first: inRow[0] },
      };
    }
    if (read.read === 'list' && this.#world.plan.indexes.includes('all'))
      return {
        body: { list: 'tasks', ...chosen, ...(isWhere && kind === 'tasks' ? where : {}) },
        list: this.#lists().all as List,
      };
    if (read.read !== 'by' || this.#world.plan.indexes.length === 0) return undefined;
    const name = this.#world.plan.indexes[read.index % this.#world.plan.indexes.length] ?? '';
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
    const missing = Object.entries(reads).filter(([, body]) => !this.#world.known.has(JSON.stringify(body)));
    for (let at = 0; at < missing.length; at += 15) {
      const some = missing.slice(at, at + 15);
      const asked = { reads: Object.fromEntries(some) };
      const reply = await this.#world.app.ask(root, 'POST', 'query', asked);
      if (reply.status !== 200) throw new Mismatch(`root: ${reply.status} ${reply.text}`);
      for (const [name, body] of some) this.#world.known.set(JSON.stringify(body), reply.body.reads[name]);
    }
    return Object.fromEntries(
      Object.entries(reads).map(([name, body]) => [name, this.#world.known.get(JSON.stringify(body)) as QueryResult]),
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
    const reply = await this.#world.app.ask(caller, 'POST', 'query', { reads: bodies });
    const isReader =
      hasRole(caller, this.#world.rules.tasks, 'read') || hasRole(caller, this.#world.rules.notes, 'read');
    if (!isReader) return this.#world.expect(reply, 403, 'query');
    this.#world.expect(reply, 200, 'query');
    for (const [name, { body, list, isOne, read }] of asked) {
      const result = reply.body.reads[name] as QueryResult;
      const what = `${JSON.stringify(caller)} ${JSON.stringify(body)} of ${JSON.stringify(this.#world.rules)}`;
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
    const expect = (status: number) => this.#world.expect({ status: result.status, text }, status, what);
    const kind: Kind =
      read.read === 'include' || (list === undefined && isOne) || 'by' in body || 'list' in body ? 'tasks' : read.kind;
    const rules = this.#world.rules[kind];
    const select = body.select as readonly string[] | undefined;
    const shown = (row: Row) => (select ? pick(row, select) : row);
    if (list) {
      const rows = all.items?.map((row) => this.#full(kind, row)) ?? [];
      this.#world.decisions += rows.length;
      const within = listed(this.#world, caller, rules, list, rows);
      if (!within) {
        this.#world.expect({ status: result.status, text }, all.status === 400 ? [400, 403] : 403, what);
        return;
      }
      if (all.status === 400) {
        expect(400);
        return;
      }
      expect(200);
      const kept = all.items?.filter((_, at) => within.includes(rows[at] as Row)) ?? [];
      this.#world.same(result.items, kept.map(shown), what);
      return;
    }
    if (!hasRole(caller, rules, 'read')) {
      expect(403);
      return;
    }
    if (read.read === 'include' && !hasRole(caller, this.#world.rules.notes, 'read')) {
      expect(403);
      return;
    }
    if (all.status === 404) {
      expect(404);
      return;
    }
    const { notes, ...own } = all.entity as Row;
    const row = this.#full(kind, own);
    if (!this.#world.may(caller, kind, 'read', row)) {
      expect(404);
      return;
    }
    expect(200);
    if (read.read !== 'include') {
      this.#world.same(result.entity, shown(own), what);
      return;
    }
    const { notes: found, ...values } = result.entity as Row;
    this.#world.same(values, own, what);
    const children = (notes as Row[]).filter((note) => this.#world.may(caller, 'notes', 'read', note));
    this.#world.same(found, children, `${what} children`);
  }

  #full(kind: Kind, row: Row): Row {
    const found = this.#world.rows[kind].get(this.#world.idOf(kind, row));
    if (!found) throw new Mismatch(`${kind}: an unknown row ${JSON.stringify(row)}`);
    return found;
  }

  /** One GET, which may be conditional. */
  async get(caller: Caller, { kind, row, etag }: Read): Promise<void> {
    const path = this.#world.pathOf(kind, row);
    const found = this.#world.rows[kind].get(this.#world.idOf(kind, row));
    const known = etag && found ? (await this.#world.app.ask(root, 'GET', path)).headers.get('etag') : undefined;
    const headers = known ? { 'if-none-match': known } : {};
    const reply = await this.#world.app.ask(caller, 'GET', path, undefined, headers);
    const what = `GET ${path} by ${JSON.stringify(caller)} of ${JSON.stringify(this.#world.rules)}`;
    if (!hasRole(caller, this.#world.rules[kind], 'read')) return this.#world.expect(reply, 403, what);
    if (found && this.#world.may(caller, kind, 'read', found)) {
      this.#world.expect(reply, known ? 304 : 200, what);
      if (!known) this.#world.same(reply.body, found, what);
      return;
    }
    this.#world.expect(reply, 404, what);
  }

  /** What an operator is told of a row and a caller. */
  async why(caller: Caller, { kind, row }: Read): Promise<void> {
    const found = this.#world.rows[kind].get(this.#world.idOf(kind, row));
    const question = { entity: kind, key: pick(row, this.#world.keys[kind]), caller };
    const reply = await this.#world.app.ask(root, 'POST', 'operations/why', question);
    const what = `why ${JSON.stringify(question)} of ${JSON.stringify(this.#world.rules)} at ${JSON.stringify(found)}`;
    if (!found) return this.#world.expect(reply, 404, what);
    this.#world.expect(reply, 200, what);
    for (const action of ACTIONS) {
      const { allowed, alternatives } = reply.body[action];
      const isAllowed = this.#world.may(caller, kind, action, found);
      const isTold = alternatives.map(
        ({
          hasRole: has,
          terms,
          transition,
        }: {
          hasRole: boolean;
          terms: { holds: boolean }[];
          transition?: { side: string };
        }) => has && transition?.side !== 'after' && terms.every(({ holds }) => holds),
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
    const isHidden = (kind: Kind) => (row: Row) => !this.#world.may(caller, kind, 'read', row);
    const tasks = [...this.#world.rows.tasks.values()].filter(isHidden('tasks'));
    const notes = [...this.#world.rows.notes.values()];
    const paths = [
      ...tasks.slice(0, 3).map((row) => this.#world.pathOf('tasks', row)),
      ...notes
        .filter(isHidden('notes'))
        .slice(0, 3)
        .map((row) => this.#world.pathOf('notes', row)),
      ...tasks.slice(0, 2).map(({ code }) => `tasks/by/code/${code}`),
    ];
    const beyond = tasks.filter((row) => !this.#world.may(caller, 'tasks', 'update', row)).slice(0, 2);
    const ask = async () => {
      const body = { reads: Object.fromEntries(asked) };
      const gets: (readonly [string, unknown])[] = [];
      for (const path of paths) gets.push([path, traceOf(await this.#world.app.ask(caller, 'GET', path))]);
      for (const row of beyond) {
        const path = this.#world.pathOf('tasks', row);
        const condition = { 'if-match': '"other"' };
        const patched = await this.#world.app.ask(caller, 'PATCH', path, { size: 3 });
        const put = await this.#world.app.ask(caller, 'PUT', path, this.#world.body('tasks', row), condition);
        const answers = [patched, put];
        if (!this.#world.may(caller, 'tasks', 'create', row))
          answers.push(await this.#world.app.ask(caller, 'PUT', path, this.#world.body('tasks', row)));
        if (!this.#world.may(caller, 'tasks', 'delete', row))
          answers.push(await this.#world.app.ask(caller, 'DELETE', path));
        gets.push([`writes of ${path}`, answers.map(traceOf)]);
      }
      const results = await this.#world.app.ask(caller, 'POST', 'query', body);
      const explained = await this.#world.app.ask(caller, 'POST', 'query?explain=true', body);
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
    const idOf = (row: Row) => this.#world.idOf('tasks', row);
    const shown = new Set(notes.filter((note) => !isHidden('notes')(note)).map(idOf));
    for (const note of notes.filter(isHidden('notes')))
      await this.#world.app.ask(root, 'DELETE', this.#world.pathOf('notes', note));
    for (const task of tasks.filter((each) => !shown.has(idOf(each))))
      await this.#world.app.ask(root, 'DELETE', this.#world.pathOf('tasks', task));
    await ask();
    const after = await ask();
    this.#world.cases += asked.length;
    for (const [name, result] of Object.entries(before)) {
      const body = Object.fromEntries(asked)[name];
      const what = `${JSON.stringify(caller)} ${JSON.stringify(body)} of ${JSON.stringify(this.#world.rules)}`;
      if (JSON.stringify(result) !== JSON.stringify(after[name]))
        throw new Mismatch(
          `${JSON.stringify(result)} with hidden rows, ${JSON.stringify(after[name])} without\n${what}`,
        );
    }
  }

  /** The pages of a list, each with one entity, and the continuation of another caller. */
  async pages(caller: Caller, read: Read): Promise<void> {
    const { inPartition, inRow } = keyOf(this.#world.plan);
    const { kind, row } = read;
    const path = [kind, ...inPartition.map((field) => String(row[field]))].join('/');
    const list = { inPartition, isWhole: true, first: inRow[0] };
    const everything = await this.#world.app.ask(root, 'GET', `${path}?top=100`);
    const rows = (everything.body.items as Row[]).map((each) => this.#full(kind, each));
    const within = listed(this.#world, caller, this.#world.rules[kind], list, rows);
    const what = `pages of ${path} by ${JSON.stringify(caller)} of ${JSON.stringify(this.#world.rules)}`;
    let next: string | undefined = `${path}?top=5`;
    const found: Row[] = [];
    while (next) {
      const reply: Reply = await this.#world.app.ask(caller, 'GET', next);
      if (!within) return this.#world.expect(reply, 403, what);
      this.#world.expect(reply, 200, what);
      found.push(...(reply.body.items as Row[]));
      next = /<[^>]*\/api\/([^>]*)>/.exec(reply.headers.get('link') ?? '')?.[1];
      if (next && found.length <= 5) {
        // The further role makes a visitor a caller with a token.
        const eve = { ...caller, subject: 'eve', roles: [...caller.roles, 'operator'] };
        const other = await this.#world.app.ask(eve, 'GET', next);
        this.#world.expect(other, 400, `continuation of another caller, ${what}`);
      }
      if (found.length > rows.length) throw new Mismatch(`${what}: too many`);
    }
    this.#world.same(found, within, what);
  }

  /** The pages of all that a caller reaches, if the rules name its partitions: nothing else, nothing twice, and with one role everything. */
  async mine(caller: Caller, kind: Kind): Promise<void> {
    const mine = apiCalls.listMine(this.#world.entityOf(kind));
    if (
      !mine ||
      keyOf(this.#world.plan).inPartition.length === 0 ||
      (kind === 'tasks' && this.#world.plan.indexes.includes('all'))
    )
      return;
    const what = `GET ${kind} by ${JSON.stringify(caller)} of ${JSON.stringify(this.#world.rules)}`;
    const [role, ...others] = caller.roles;
    const isRefused = !caller.roles.some((one) => mine.roles?.includes(one));
    const reachesEveryRow = reachesAll(this.#world, caller, this.#world.rules[kind], 'read', {});
    const found: Row[] = [];
    for (let next: string | undefined = `${kind}?top=7`; next; ) {
      const reply: Reply = await this.#world.app.ask(caller, 'GET', next);
      if (isRefused || reachesEveryRow) return this.#world.expect(reply, 403, what);
      this.#world.expect(reply, 200, what);
      found.push(...(reply.body.items as Row[]));
      next = /<[^>]*\/api\/([^>]*)>/.exec(reply.headers.get('link') ?? '')?.[1];
      if (found.length > this.#world.rows[kind].size) throw new Mismatch(`${what}: too many`);
    }
    const inOrder = (rows: readonly Row[]) =>
      rows.toSorted((a, b) => (this.#world.idOf(kind, a) < this.#world.idOf(kind, b) ? -1 : 1));
    const listing = { read: this.#world.rules[kind].read.filter(({ lists }) => lists !== 'none') };
    const within = [...this.#world.rows[kind].values()].filter((row) => {
      this.#world.decisions += 1;
      return may(this.#world, caller, { ...this.#world.rules[kind], ...listing }, 'read', row);
    });
    const isAll = role !== undefined && others.length === 0;
    const expected = isAll
      ? within
      : within.filter((row) => found.some((one) => this.#world.idOf(kind, one) === this.#world.idOf(kind, row)));
    this.#world.same(inOrder(found), inOrder(expected), what);
  }

  async total(caller: Caller, { row, index, depth }: Read): Promise<void> {
    const names = this.#world.plan.totals;
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
    const all = await this.#world.app.ask(root, 'GET', paths[1] ?? '');
    const reply = await this.#world.app.ask(caller, 'GET', paths[1] ?? '');
    const what = `GET ${paths[1]} by ${JSON.stringify(caller)} of ${JSON.stringify(this.#world.rules)}`;
    if (!hasRole(caller, this.#world.rules.tasks, 'read')) return this.#world.expect(reply, 403, what);
    const known = pick(
      row,
      given.filter((field) => field !== 'day'),
    );
    if (!reachesAll(this.#world, caller, this.#world.rules.tasks, 'read', known))
      return this.#world.expect(reply, 403, what);
    this.#world.expect(reply, all.status, what);
    if (reply.text !== all.text) throw new Mismatch(`${what}: ${reply.text} in place of ${all.text}`);
    this.#world.decisions += 1;
  }
}

interface QueryResult {
  readonly status: number;
  readonly items?: readonly Row[];
  readonly entity?: Row;
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
