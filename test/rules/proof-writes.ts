import { type Caller, hasRole, mayChange, type Row, reachesAll } from './evaluator.ts';
import { Transfers } from './proof-transfers.ts';
import { FIELDS, Mismatch, omit, pick, root, type World } from './proof-world.ts';
import { keyOf, movableOf } from './random-model.ts';
import type { Change, Kind, Write } from './random-requests.ts';

/** Sends writes to the app of a random model, and compares each response with what the evaluator expects. */
export class Writes {
  readonly #world: World;
  readonly transfers: Transfers;
  /** Changes that had been made already, and that the caller could not begin any more. */
  repeated = 0;
  /** Changes that only a transition allows. */
  made = 0;

  constructor(world: World) {
    this.#world = world;
    this.transfers = new Transfers(world);
  }

  async write(caller: Caller, write: Write): Promise<void> {
    this.#world.known = new Map();
    const aimed = this.#aim(caller, write);
    await this.#send(caller, aimed);
    // As if the reply had been lost.
    if (aimed !== write) await this.#send(caller, aimed);
    // A failed write leaves the claim of a value that its entity has already to the queue.
    await this.#world.worker.settle();
  }

  /** A change that a transition may allow, where there is one: few random changes meet both of its sides. */
  #aim(caller: Caller, write: Write): Write {
    const { kind, action } = write;
    if (!write.isAtomic || (write.write !== 'put' && write.write !== 'patch')) return write;
    const only = { ...this.#world.rules[kind], update: [] };
    const found = [...this.#world.rows[kind].values()].find((row) => {
      const patch = write.write === 'put' ? action.row : this.#patch(kind, action.row, action.changed);
      const after = { ...row, ...patch, ...pick(row, this.#world.keys[kind]) };
      return !caller.roles.includes('root') && mayChange(this.#world, caller, only, row, this.#world.derive(after));
    });
    return found
      ? { ...write, action: { ...action, row: { ...action.row, ...pick(found, this.#world.keys[kind]) } } }
      : write;
  }

  async #send(caller: Caller, write: Write): Promise<void> {
    const { kind, action } = write;
    if (write.write === 'person') return this.#world.addPerson(String(action.row.owner), String(action.row.team));
    if (write.write === 'member') return this.#join(write);
    if (write.write === 'create') return this.#create(caller, kind, action.row);
    if (write.write === 'batch') return this.#batch(caller, write);
    if (write.write === 'range') return this.#deleteRange(caller, write);
    if (write.write !== 'move' && write.write !== 'archive') return this.#change(caller, write, write.write);
    const canGo = write.write === 'archive' ? this.#world.plan.isMovable : movableOf(this.#world.plan).length > 0;
    if (canGo) return this.transfers.transfer(caller, write.write, write);
    return this.#change(caller, write, 'patch');
  }

  async #join({ action: { row }, level, isMinimal }: Write): Promise<void> {
    const { team, owner: user } = row;
    const at = this.#world.members.findIndex((each) => each.team === team && each.user === user);
    if (at >= 0) this.#world.members.splice(at, 1);
    if (isMinimal) {
      await this.#world.app.ask(root, 'DELETE', `members/${team}/${user}`);
      return;
    }
    this.#world.members.push({ team, user, level });
    this.#world.expect(
      await this.#world.app.ask(root, 'PUT', `members/${team}/${user}`, { team, user, level }),
      [200, 201],
      'join',
    );
  }

  /** What is sent of a row: if a create takes the owner from the caller, some bodies are without. */
  #sent(kind: Kind, row: Row): Row {
    const body = this.#world.body(kind, row);
    return this.#leavesOut(kind, row) ? omit(body, 'owner') : body;
  }

  #leavesOut(kind: Kind, { flag }: Row): boolean {
    return this.#isSet(kind) && flag === true && !this.#world.keys[kind].includes('owner');
  }

  #isSet(kind: Kind): boolean {
    return this.#world.plan.isOwnerSet && kind === 'tasks';
  }

  /** True if the owner is neither the caller who creates the row, nor the owner before. */
  #namesAnother(caller: Caller, kind: Kind, { owner }: Row, before?: Row): boolean {
    return this.#isSet(kind) && owner !== (before ? before.owner : caller.subject);
  }

  /** Undefined if the row can be created, otherwise the status of the error. */
  #whyNotCreate(caller: Caller, kind: Kind, row: Row): number | undefined {
    if (!this.#world.may(caller, kind, 'create', row) || this.#namesAnother(caller, kind, row)) return 403;
    if (kind === 'notes' && !this.#hasParent(caller, row)) return 400;
    if (this.#world.rows[kind].has(this.#world.idOf(kind, row))) return 409;
    return this.#isTaken(kind, row) ? 409 : undefined;
  }

  #hasParent(caller: Caller, row: Row): boolean {
    const parent = this.#world.rows.tasks.get(this.#world.idOf('tasks', row));
    return parent !== undefined && this.#world.may(caller, 'tasks', 'read', parent);
  }

  #isTaken(kind: Kind, row: Row): boolean {
    if (kind !== 'tasks' || row.code === undefined || !this.#world.plan.indexes.includes('code')) return false;
    const id = this.#world.idOf(kind, row);
    return [...this.#world.rows.tasks].some(([other, { code }]) => code === row.code && other !== id);
  }

  #shown(caller: Caller, kind: Kind, row: Row): Row {
    return this.#world.may(caller, kind, 'read', row) ? this.#world.derive(row) : pick(row, this.#world.keys[kind]);
  }

  async #create(caller: Caller, kind: Kind, given: Row): Promise<void> {
    const sent = this.#sent(kind, given);
    const row = this.#leavesOut(kind, given) ? { ...sent, owner: caller.subject } : sent;
    const reply = await this.#world.app.ask(caller, 'POST', kind, sent);
    const what = `POST ${JSON.stringify(sent)} by ${JSON.stringify(caller)} of ${JSON.stringify(this.#world.rules)}`;
    if (!hasRole(caller, this.#world.rules[kind], 'create')) return this.#world.expect(reply, 403, what);
    const error = this.#whyNotCreate(caller, kind, row);
    if (error !== undefined) return this.#world.expect(reply, error === 409 && kind === 'notes' ? [409] : error, what);
    this.#world.expect(reply, 201, what);
    this.#world.same(reply.body, this.#shown(caller, kind, row), what);
    this.#world.set(kind, row);
  }

  /** The status of a change, which is applied. */
  #apply(
    caller: Caller,
    kind: Kind,
    { does, row: given, changed }: Change,
    condition: Write['condition'] = 'none',
  ): { readonly status: number; readonly after?: Row | undefined } {
    const id = this.#world.idOf(kind, given);
    const before = this.#world.rows[kind].get(id);
    const action = does === 'delete' ? 'delete' : 'update';
    const canSee = before !== undefined && this.#world.may(caller, kind, 'read', before);
    const canChange = before !== undefined && this.#world.may(caller, kind, action, before);
    const isThere = does === 'put' && condition !== 'new' && (canSee || canChange);
    const left = this.#leavesOut(kind, given) ? { owner: isThere ? before?.owner : caller.subject } : {};
    const row = { ...this.#world.body(kind, given), ...left };
    if (does === 'create') {
      const error = this.#whyNotCreate(caller, kind, row);
      if (error !== undefined) return { status: error };
      this.#world.set(kind, row);
      return { status: 201, after: row };
    }
    if (does === 'put' && condition === 'new') {
      if (!this.#world.may(caller, kind, 'create', row) || this.#namesAnother(caller, kind, row))
        return { status: 403 };
      if (kind === 'notes' && !this.#hasParent(caller, row)) return { status: 400 };
      // The key of a row that the caller may not know of is taken, as for a create.
      if (before) return { status: canSee || canChange ? 412 : 409 };
    }
    if (does === 'put' && !canChange && !canSee) {
      // As if there were none.
      if (condition === 'right' || condition === 'wrong') return { status: 412 };
      const error = this.#whyNotCreate(caller, kind, row);
      if (error !== undefined) return { status: error };
      this.#world.set(kind, row);
      return { status: 201, after: row };
    }
    if (!before) return { status: 404 };
    const after = does === 'put' ? row : this.#patched(kind, before, given, changed);
    // A change that has been made already.
    const isRepeated = does !== 'delete' && canSee && this.#world.has(kind, after);
    if (!canChange && isRepeated && this.#world.mayChange(caller, kind, undefined, after)) {
      this.repeated += 1;
      return condition === 'wrong' ? { status: 412 } : { status: 200, after };
    }
    if (!canChange) return { status: canSee ? 403 : 404 };
    if (condition === 'wrong') return { status: 412 };
    if (does === 'delete') {
      this.#world.rows[kind].delete(id);
      if (kind === 'tasks')
        for (const [other, note] of this.#world.rows.notes)
          if (this.#world.idOf('tasks', note) === id) this.#world.rows.notes.delete(other);
      return { status: 204 };
    }
    if (!this.#world.mayChange(caller, kind, before, after)) return { status: 403 };
    if (this.#namesAnother(caller, kind, after, before)) return { status: 403 };
    if (this.#isTaken(kind, after)) return { status: 409 };
    const { transitions: _, ...plain } = this.#world.rules[kind];
    this.made += mayChange(this.#world, caller, plain, before, this.#world.derive(after)) ? 0 : 1;
    this.#world.set(kind, after);
    return { status: 200, after };
  }

  #patch(kind: Kind, row: Row, changed: Change['changed']): Row {
    const fields = changed.filter((field) => FIELDS[kind].includes(field) && !this.#world.keys[kind].includes(field));
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
    const known = pick(given, keyOf(this.#world.plan).all);
    return reachesAll(this.#world, caller, this.#world.rules.notes, 'delete', known);
  }

  async #change(caller: Caller, write: Write, does: 'put' | 'patch' | 'delete'): Promise<void> {
    const { kind, action: given, condition, isMinimal } = write;
    const path = this.#world.pathOf(kind, given.row);
    const method = { put: 'PUT', patch: 'PATCH', delete: 'DELETE' } as const;
    const current =
      condition === 'right' ? (await this.#world.app.ask(root, 'GET', path)).headers.get('etag') : undefined;
    const headers: Record<string, string> = {
      ...(condition === 'right' ? { 'if-match': current ?? '"none"' } : {}),
      ...(condition === 'wrong' ? { 'if-match': '"wrong"' } : {}),
      ...(condition === 'new' && does === 'put' ? { 'if-none-match': '*' } : {}),
      ...(does === 'patch' && isMinimal ? { prefer: 'return=minimal' } : {}),
    };
    const body = does === 'put' ? this.#sent(kind, given.row) : this.#patch(kind, given.row, given.changed);
    const reply = await this.#world.app.ask(caller, method[does], path, does === 'delete' ? undefined : body, headers);
    const what = `${method[does]} ${path} ${JSON.stringify(body)} ${JSON.stringify(headers)} by ${JSON.stringify(caller)} of ${JSON.stringify(this.#world.rules)} at ${JSON.stringify(this.#world.rows[kind].get(this.#world.idOf(kind, given.row)))}`;
    const actions = { put: ['update', 'create'], patch: ['update'], delete: ['delete'] } as const;
    if (!hasRole(caller, this.#world.rules[kind], ...actions[does])) return this.#world.expect(reply, 403, what);
    if (does === 'delete' && !this.#canRemove(caller, kind, given.row)) return this.#world.expect(reply, 403, what);
    const missing = condition === 'right' && !current ? 'wrong' : condition;
    const used = missing === 'new' && does !== 'put' ? 'none' : missing;
    const { status, after } = this.#apply(caller, kind, { ...given, does }, used);
    const accepted = status === 200 || status === 201 ? [200, 201, 204] : status;
    this.#world.expect(reply, accepted, what);
    if (after && reply.status !== 204) this.#world.same(reply.body, this.#shown(caller, kind, after), what);
  }

  async #batch(caller: Caller, { kind, actions, isAtomic }: Write): Promise<void> {
    const sent = actions.map(({ does, row, changed }) => ({
      [does]: {
        ...pick(row, this.#world.keys[kind]),
        ...(does === 'patch' ? this.#patch(kind, row, changed) : does === 'delete' ? {} : this.#sent(kind, row)),
      },
    }));
    const reply = await this.#world.app.ask(caller, 'POST', `${kind}/batch`, { actions: sent, atomic: isAtomic });
    const what = `batch ${isAtomic} ${JSON.stringify(sent)} by ${JSON.stringify(caller)} of ${JSON.stringify(this.#world.rules)} at ${JSON.stringify([...this.#world.rows[kind].values()])}`;
    if (!hasRole(caller, this.#world.rules[kind], 'create', 'update', 'delete'))
      return this.#world.expect(reply, 403, what);
    if (actions.some(({ does, row }) => does === 'delete' && !this.#canRemove(caller, kind, row)))
      return this.#world.expect(reply, 403, what);
    const saved = [new Map(this.#world.rows.tasks), new Map(this.#world.rows.notes)] as const;
    const rollBack = () => {
      for (const [at, name] of (['tasks', 'notes'] as const).entries()) {
        this.#world.rows[name].clear();
        for (const [id, row] of saved[at] ?? []) this.#world.rows[name].set(id, row);
      }
    };
    const ids = actions.map(({ row }) => this.#world.idOf(kind, row));
    if (isAtomic && (reply.status === 400 || new Set(ids).size < ids.length)) {
      // Not in one partition, or two on one entity: nothing may have changed.
      this.#world.cases += 1;
      if (reply.status < 400) throw new Mismatch(`${what}: ${reply.status}`);
      return;
    }
    const results = actions.map((change) => this.#apply(caller, kind, change));
    const failed = results.find(({ status }) => status >= 400);
    if (isAtomic && failed) {
      rollBack();
      if (reply.status < 400) throw new Mismatch(`${reply.status} ${reply.text} in place of ${failed.status}\n${what}`);
      this.#world.cases += 1;
      return;
    }
    this.#world.expect(reply, 200, what);
    const found = (reply.body.results as { status: number }[]).map(({ status }) => (status < 400 ? 200 : status));
    const expected = results.map(({ status }) => (status < 400 ? 200 : status));
    if (found.join() !== expected.join()) throw new Mismatch(`${reply.text} in place of ${expected}\n${what}`);
    this.#world.cases += found.length;
  }

  async #deleteRange(caller: Caller, { kind, action: { row } }: Write): Promise<void> {
    const { inPartition } = keyOf(this.#world.plan);
    const path = [kind, ...inPartition.map((field) => String(row[field]))].join('/');
    const reply = await this.#world.app.ask(caller, 'DELETE', `${path}?all=true`);
    const what = `DELETE ${path}?all=true by ${JSON.stringify(caller)} of ${JSON.stringify(this.#world.rules)} at ${JSON.stringify([...this.#world.rows[kind].values()])}`;
    if (!hasRole(caller, this.#world.rules[kind], 'delete')) return this.#world.expect(reply, 403, what);
    const known = pick(row, inPartition);
    if (kind === 'tasks' && !reachesAll(this.#world, caller, this.#world.rules.notes, 'delete', known))
      return this.#world.expect(reply, 403, what);
    this.#world.expect(reply, [200, 204], what);
    const inRange = (each: Row) => inPartition.every((field) => each[field] === row[field]);
    let deleted = 0;
    for (const [, each] of [...this.#world.rows[kind]].filter(([, value]) => inRange(value)))
      if (this.#world.may(caller, kind, 'delete', each)) {
        this.#apply(caller, kind, { does: 'delete', row: each, changed: [] });
        deleted += 1;
      }
    if (reply.body && reply.body.deleted !== deleted)
      throw new Mismatch(`${reply.text} in place of ${deleted}\n${what}`);
  }
}
