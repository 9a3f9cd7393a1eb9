import { type Caller, hasRole, type Row, reachesAll } from './evaluator.ts';
import { omit, pick, root, type World } from './proof-world.ts';
import { keyOf, movableOf } from './random-model.ts';
import type { Write } from './random-requests.ts';

type Kind = 'move' | 'archive';

/**
 * Archives and moves of tasks with their notes: what the request says, and whether the operation is done after the app itself has changed the
 * task or a note meanwhile.
 */
export class Transfers {
  readonly #world: World;
  /** The keys of archived tasks. */
  readonly #archived = new Set<string>();
  done = 0;
  refused = 0;

  constructor(world: World) {
    this.#world = world;
  }

  async transfer(caller: Caller, kind: Kind, { action, actions, isMinimal }: Write): Promise<void> {
    const { plan, rows, rules } = this.#world;
    const given = this.#choose(caller, kind, action.row);
    const path = this.#world.pathOf('tasks', given);
    const to = kind === 'move' ? pick(actions[0]?.row ?? {}, movableOf(plan)) : {};
    const body = kind === 'move' ? to : undefined;
    const reply = await this.#world.app.ask(caller, 'POST', `${path}/${kind}`, body);
    const before = rows.tasks.get(this.#world.idOf('tasks', given));
    const what = `POST ${path}/${kind} ${JSON.stringify(body)} by ${JSON.stringify(caller)} of ${JSON.stringify(rules)} at ${JSON.stringify(before)} with ${JSON.stringify(this.#notesOf(given))}`;
    const does = kind === 'move' ? 'update' : 'delete';
    if (!hasRole(caller, rules.tasks, does)) return this.#world.expect(reply, 403, what);
    const known = pick(given, keyOf(plan).all);
    if (!reachesAll(this.#world, caller, rules.notes, 'delete', known)) return this.#world.expect(reply, 403, what);
    if (kind === 'move' && Object.entries(to).every(([field, value]) => given[field] === value))
      return this.#world.expect(reply, 400, what);
    if (!before) return this.#world.expect(reply, 404, what);
    const canSee = this.#world.may(caller, 'tasks', 'read', before);
    if (!this.#world.may(caller, 'tasks', does, before)) return this.#world.expect(reply, canSee ? 403 : 404, what);
    if (!this.#canGo(caller, kind, before, to)) return this.#world.expect(reply, 403, what);
    this.#world.expect(reply, 202, what);
    const after = await this.#changeMeanwhile(before, actions.at(-1)?.row ?? {}, isMinimal);
    await this.#world.worker.settle();
    const there = this.#world.idOf('tasks', { ...after, ...to });
    const isTaken = kind === 'move' ? rows.tasks.has(there) : this.#archived.has(there);
    const isDone = !isTaken && this.#world.may(caller, 'tasks', does, after) && this.#canGo(caller, kind, after, to);
    const { operationId } = reply.body;
    const { body: found } = await this.#world.app.ask(root, 'GET', `${path}/${kind}/${operationId}`);
    const expected = isDone ? 'succeeded' : 'failed';
    this.#world.same(
      { status: found.status },
      { status: expected },
      `${found.reason}, now ${JSON.stringify(after)}\n${what}`,
    );
    if (isDone) this.#apply(kind, after, to);
    this.done += isDone ? 1 : 0;
    this.refused += isDone || isTaken ? 0 : 1;
  }

  /** A random key has no task in most cases, and a random caller may move few. */
  #choose(caller: Caller, kind: Kind, { rank, id, ...row }: Row): Row {
    const all = [...this.#world.rows.tasks.values()];
    const does = kind === 'move' ? 'update' : 'delete';
    const some = rank === 0 ? all : all.filter((task) => this.#world.may(caller, 'tasks', does, task));
    return (rank === 1 ? undefined : some[Number(id) % some.length]) ?? { ...row, rank, id };
  }

  #notesOf(task: Row): Row[] {
    const id = this.#world.idOf('tasks', task);
    return [...this.#world.rows.notes.values()].filter((note) => this.#world.idOf('tasks', note) === id);
  }

  /** True if the rules let a move take the task there, and create its notes. An archive needs no more than its request. */
  #canGo(caller: Caller, kind: Kind, task: Row, to: Row): boolean {
    if (kind === 'archive') return true;
    if (!this.#world.mayChange(caller, 'tasks', task, { ...task, ...to })) return false;
    return this.#notesOf(task).every((note) => this.#world.may(caller, 'notes', 'create', { ...note, ...to }));
  }

  /** The app itself changes the task, or the owner of its notes. Returns the task. */
  async #changeMeanwhile(task: Row, other: Row, isOfNotes: boolean): Promise<Row> {
    const { plan, keys, app } = this.#world;
    const fields = (isOfNotes ? ['owner'] : ['state', 'rank', 'owner', 'flag']).filter(
      (field) => !keys.tasks.includes(field),
    );
    // Nobody may give another owner to a task that has one.
    const changed = plan.isOwnerSet && !isOfNotes ? omit(pick(other, fields), 'owner') : pick(other, fields);
    if (Object.keys(changed).length === 0) return task;
    const kind = isOfNotes ? 'notes' : 'tasks';
    for (const row of isOfNotes ? this.#notesOf(task) : [task]) {
      const reply = await app.ask(root, 'PATCH', this.#world.pathOf(kind, row), changed);
      this.#world.expect(reply, 200, `PATCH ${kind} ${JSON.stringify(changed)} of ${JSON.stringify(row)}`);
      this.#world.set(kind, { ...row, ...changed });
    }
    return isOfNotes ? task : { ...task, ...changed };
  }

  #apply(kind: Kind, task: Row, to: Row): void {
    const { rows } = this.#world;
    const carried = this.#notesOf(task);
    for (const note of carried) rows.notes.delete(this.#world.idOf('notes', note));
    rows.tasks.delete(this.#world.idOf('tasks', task));
    if (kind === 'archive') {
      this.#archived.add(this.#world.idOf('tasks', task));
      return;
    }
    const moved = { ...task, ...to };
    this.#world.set('tasks', moved);
    for (const note of carried) this.#world.set('notes', { ...note, ...to });
  }
}
