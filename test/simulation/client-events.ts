import type { Values } from '../../lib/index.ts';
import { baseValues } from '../kit/base.ts';
import type { Entity } from '../kit/define.ts';
import type { createAuditOracle } from './audit-oracle.ts';
import type { Caller } from './caller.ts';
import { CLIENTS, type Event, STEWARD_CLIENT, type Stops } from './event.ts';
import type { createHistory } from './history.ts';
import type { Plan } from './plan.ts';
import type { createRulesOracle } from './rules-oracle.ts';
import { elapsed } from './world/virtual-world.ts';

/** What clients do in a world, and what the oracles learn of it. */

type ClientEvent = Extract<Event, { do: 'write' | 'read' | 'grant' | 'list' | 'transact' | 'continue' }>;

interface ClientEvents {
  readonly plan: Plan;
  readonly callers: () => readonly Caller[];
  readonly history: ReturnType<typeof createHistory>;
  readonly audit: ReturnType<typeof createAuditOracle>;
  readonly rules: ReturnType<typeof createRulesOracle> | undefined;
  readonly log: (line: string) => void;
  readonly notice: (situation: string) => void;
  /** Counts how an operation has ended. */
  readonly count: (outcome: string) => void;
  /** Called with what rules or continuations should have prevented. */
  readonly violate: (problem: string) => void;
  /** Waits until the event is to begin, and sets its traps. */
  readonly stop: (entity: Entity, event: Stops) => Promise<void>;
}

/** The last client is the user whom rules limit. */
export const isLimited = ({ user }: Plan, client: number) => user !== undefined && client === CLIENTS - 1;
export const nameOf = (plan: Plan, client: number) => (isLimited(plan, client) && plan.user) || `client${client}`;

/** The entity in the last release, whose entities the history compares. */
export const entityOf = ({ model }: Plan, of: string) => model.list.find(({ name }) => name === of);

export function createClientEvents(options: ClientEvents) {
  const { plan, history, audit, rules, log, notice, count, violate, stop } = options;
  function reached(entity: Entity, values: Values, call: { readonly nth: number; readonly ended: number }): void {
    const problem = rules?.check(entity, values, call);
    if (problem) violate(problem);
  }

  return async (event: ClientEvent, nth: number): Promise<void> => {
    const callers = options.callers();
    switch (event.do) {
      case 'write': {
        const { step, client } = event;
        const entity = entityOf(plan, step.of);
        if (!entity) return;
        await stop(entity, event);
        const begun = elapsed();
        rules?.noteWrite(step, begun);
        const outcome = await callers[client]?.write(entity, step);
        if (!outcome) return;
        log(`${elapsed().toFixed(3)} event ${nth} ${step.do} ${outcome.code} ${outcome.message ?? ''}`);
        count(`${step.do} ${outcome.code}`);
        audit.noteWrite(nameOf(plan, client), entity, step, outcome);
        const call = { nth, begun, ended: elapsed(), outcome };
        if (!isLimited(plan, client)) return history.addWrite(entity, step, call);
        notice(`user: ${step.do} ${outcome.code}`);
        // What is out of reach is not found, which says nothing of it. An earlier request of the client may have been executed, and a client that
        // repeats a delete takes it for done if nothing is found.
        const isSure = outcome.sent <= 1 || (outcome.code === 'ok' && step.do !== 'delete');
        const code = isSure ? outcome.code : 'unknown';
        if (code !== 'ok' && code !== 'unknown') return;
        const deleted = code === 'ok' ? rules?.checkDelete(step, nth) : undefined;
        if (deleted) violate(deleted);
        const parts = outcome.parts?.map((code) => (['ok', 'unknown'].includes(code) ? code : 'rejected'));
        history.addWrite(
          entity,
          step,
          { ...call, outcome: { ...outcome, code, ...(parts && { parts }) } },
          rules?.allows,
        );
        // Who may write and not read gets the key, which was given.
        const shown = baseValues.omit(outcome.values ?? {}, entity.keyFields);
        if (outcome.values && Object.keys(shown).length > 0) reached(entity, outcome.values, call);
        return;
      }
      case 'read': {
        const entity = entityOf(plan, event.of);
        if (!entity) return;
        await stop(entity, event);
        const begun = elapsed();
        const outcome = await callers[event.client]?.read(entity, event.key);
        if (!outcome) return;
        log(`${elapsed().toFixed(3)} event ${nth} read ${outcome.code}`);
        if (event.client === STEWARD_CLIENT) audit.noteRead(nameOf(plan, event.client), entity, event.key, outcome);
        count(`read ${outcome.code}`);
        const call = { nth, begun, ended: elapsed(), outcome };
        if (!isLimited(plan, event.client)) return history.addRead(entity, event.key, call);
        notice(`user: read ${outcome.values ? 'something' : 'nothing'}`);
        if (!outcome.values) return;
        history.addRead(entity, event.key, call);
        reached(entity, outcome.values, call);
        return;
      }
      case 'grant': {
        const entity = entityOf(plan, event.of);
        if (!entity) return;
        await stop(entity, event);
        const outcome = await callers[event.client]?.grant(entity);
        if (!outcome) return;
        log(`${elapsed().toFixed(3)} event ${nth} grant ${outcome.code} ${outcome.message ?? ''}`);
        count(`grant ${outcome.code}`);
        audit.noteGrant(nameOf(plan, event.client), outcome);
        return;
      }
      case 'list': {
        const entity = entityOf(plan, event.of);
        if (!entity) return;
        await stop(entity, event);
        const begun = elapsed();
        const partition = baseValues.pick(event.key, entity.partition.fields);
        const outcome = await callers[event.client]?.list(entity, partition);
        if (!outcome) return;
        log(`${elapsed().toFixed(3)} event ${nth} list ${outcome.code}`);
        count(`list ${outcome.code}`);
        notice(outcome.code === 'ok' ? 'list' : 'list is rejected');
        const call = { nth, begun, ended: elapsed(), outcome, isPart: isLimited(plan, event.client) };
        history.addList(entity, partition, call);
        if (call.isPart) for (const values of outcome.items ?? []) reached(entity, values, call);
        return;
      }
      case 'transact': {
        const begun = elapsed();
        const outcome = await callers[event.client]?.transact(event.actions);
        if (!outcome) return;
        log(`${elapsed().toFixed(3)} event ${nth} transact ${outcome.code} ${outcome.message ?? ''}`);
        count(`transact ${outcome.code}`);
        notice(`transact ${outcome.code}`);
        const names = event.actions.flatMap((action) => Object.keys(action));
        if (isLimited(plan, event.client) && outcome.code === 'ok' && !rules?.mayCreate(names))
          violate(`event ${nth}: ${plan.user} creates ${names.join(' and ')}`);
        const call = { nth, begun, ended: elapsed(), outcome };
        for (const [of = '', { create: values } = {}] of event.actions.flatMap((action) => Object.entries(action))) {
          const entity = entityOf(plan, of);
          if (!entity || !values) continue;
          const step = { of, do: 'create', values } as const;
          audit.noteWrite(nameOf(plan, event.client), entity, step, outcome);
          if (outcome.code === 'ok' || outcome.code === 'unknown') history.addWrite(entity, step, call);
        }
        return;
      }
      case 'continue': {
        const entity = entityOf(plan, event.of);
        if (!entity) return;
        const partition = baseValues.pick(event.key, entity.partition.fields);
        const [first, second] = event.clients.map((client) => callers[client]);
        const page = await first?.page(entity, partition);
        const outcome = page?.next === undefined ? undefined : await second?.page(entity, partition, page.next);
        if (!outcome) return;
        log(`${elapsed().toFixed(3)} event ${nth} continue ${outcome.code} ${outcome.message ?? ''}`);
        count(`continue ${outcome.code}`);
        notice('page of another caller');
        if (outcome.code === 'ok')
          violate(`event ${nth}: client ${event.clients[1]} reads the next page of client ${event.clients[0]}`);
        return;
      }
    }
  };
}
