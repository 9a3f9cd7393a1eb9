import type { EntityCost } from '../capacity/entity-cost.ts';
import type { Published } from '../capacity/published.ts';
import { accountShares, type Keys, slotOfPartition, slotShares, spreadSlots } from './keys.ts';
import { createSampler, type Random } from './random.ts';
import { createStation, type Outcome, type Station, type Step, simulate } from './simulate.ts';

/** Requests to a system of accounts, queues and processes under the published targets. */

interface Load {
  /** Requests a second. */
  readonly rate: number;
  /** The part of them that creates an entity; the others read one by its key. */
  readonly writes: number;
  readonly keys: Keys;
}

export interface System {
  readonly accounts: number;
  /** The queues of intents in each account. */
  readonly queues: number;
  readonly processes: number;
  /** True if the audit log has an account of its own, which `accounts` does not count; else it is in the first one. */
  readonly isAuditApart: boolean;
  /** The account of each slot: spread evenly, unless given. */
  readonly owners?: readonly number[];
}

export interface Assumptions {
  readonly cost: EntityCost;
  readonly targets: Published['targets'];
  /** Seconds of CPU. */
  readonly readCpu: number;
  readonly writeCpu: number;
  /** Seconds from a request to storage to its response, if no limit is near. */
  readonly delay: number;
  /** The part of a target that a system is planned for. */
  readonly utilization: number;
}

/** A part of a system that serves at a limited rate, and the part of this rate that a load uses. */
export interface Use {
  readonly what: 'account' | 'account of the audit log' | 'partition' | 'partition of an index' | 'queue' | 'process';
  readonly part: number;
}

/** Changes that arrive at a process while an append is under way share the next one, which takes about 10 ms. */
const APPENDS_OF_PROCESS = 100;
/** Storage rejects a request that would wait for longer, in seconds: an assumption. */
const PATIENCE = 0.25;
/** Seconds between the attempts of the SDKs, as lib/storage/storage.ts sets them. */
const RETRIES = [0.2, 0.4, 0.8];
/** Until a limit that is exceeded rejects requests. Those that begin before are not counted. */
const WARM_UP = 0.5;
/** Requests are counted for so many seconds at least and at most, and else for so many requests. */
const MIN_SECONDS = 0.1;
const MAX_SECONDS = 30;
const REQUESTS = 50_000;
/** A caller waits for so many seconds. */
const WITHIN = 0.5;

/** Requests to storage of an average request, without the audit log. */
export function requestsOf({ cost }: Assumptions, writes: number): number {
  return (1 - writes) * cost.read + writes * (cost.tables + cost.queues);
}

/** Calls to the entity's own partition, and entities that they read and write. */
function ownCalls({ rows, tables }: EntityCost) {
  const [own, ...entries] = rows;
  const calls = tables - entries.reduce((sum, row) => sum + row.calls, 0);
  return { calls, entities: calls - 1 + (own?.rows ?? 1), entries };
}

/** Returns the smallest system that stays below the planned part of the targets, as far as more of something helps. */
export function planSystem(load: Load, assumed: Assumptions): System {
  const { targets, utilization } = assumed;
  const upTo = (need: number, limit: number) => Math.max(1, Math.ceil(need / (limit * utilization)));
  const accounts = Math.min(
    targets.accounts.value,
    upTo(load.rate * requestsOf(assumed, load.writes), targets.accountRequests.value),
  );
  return {
    accounts,
    queues: upTo((load.rate * load.writes) / accounts, targets.queueMessages.value),
    processes: Math.min(
      targets.instances.value,
      upTo(load.rate * ((1 - load.writes) * assumed.readCpu + load.writes * assumed.writeCpu), 1),
    ),
    isAuditApart: accounts > 1,
  };
}

/** The part of each limit that the load uses, by its busiest place: the average of any time, without waits. */
export function usesOf(load: Load, system: System, assumed: Assumptions): Use[] {
  const { rate, writes, keys } = load;
  const { targets, cost } = assumed;
  const { calls, entities, entries } = ownCalls(cost);
  const byAccount = accountShares(slotShares(keys), system.owners ?? spreadSlots(system.accounts), system.accounts);
  const byKey = (1 - writes) * cost.read + writes * (calls + cost.queues);
  const byHash = (requestsOf(assumed, writes) - byKey) / system.accounts;
  const accounts = byAccount.map((share) => (rate * (share * byKey + byHash)) / targets.accountRequests.value);
  const appends = Math.min(rate * writes, system.processes * APPENDS_OF_PROCESS) / targets.accountRequests.value;
  if (!system.isAuditApart) accounts[0] = (accounts[0] ?? 0) + appends;
  const [hottest = 0] = keys.shares;
  const entry = entries.flatMap(({ calls: each, partitions }) => (partitions === undefined ? [] : [each / partitions]));
  const busiest = Math.max(...byAccount);
  return [
    { what: 'account', part: Math.max(...accounts) },
    ...(system.isAuditApart ? [{ what: 'account of the audit log' as const, part: appends }] : []),
    {
      what: 'partition',
      part: (rate * hottest * ((1 - writes) * cost.read + writes * entities)) / targets.partitionEntities.value,
    },
    {
      what: 'partition of an index',
      part: (rate * writes * Math.max(0, ...entry)) / targets.partitionEntities.value,
    },
    // The messages of one partition are in one queue.
    {
      what: 'queue',
      part: (rate * writes * (hottest + Math.max(0, busiest - hottest) / system.queues)) / targets.queueMessages.value,
    },
    {
      what: 'process',
      part: (rate * ((1 - writes) * assumed.readCpu + writes * assumed.writeCpu)) / system.processes,
    },
  ];
}

/** Simulates a load. The stations have what is needed to compare it with `usesOf`. */
export function serveLoad(load: Load, system: System, assumed: Assumptions, random: Random): Served {
  const { rate, writes, keys } = load;
  const { targets, cost, delay } = assumed;
  const seconds = WARM_UP + Math.min(MAX_SECONDS, Math.max(MIN_SECONDS, REQUESTS / rate));
  const limited = (name: string, limit: number) => createStation(name, { seconds: 1 / limit, patience: PATIENCE });
  const all = <Value>(count: number, create: (index: number) => Value) =>
    Array.from({ length: count }, (_, at) => create(at));
  const accounts = all(system.accounts, (index) => limited(`account ${index}`, targets.accountRequests.value));
  const audit = system.isAuditApart ? limited('audit', targets.accountRequests.value) : accounts[0];
  const processes = all(system.processes, (index) => createStation(`process ${index}`, { seconds: 1 }));
  const owners = system.owners ?? spreadSlots(system.accounts);
  const { calls, entities, entries } = ownCalls(cost);

  const step = (delayed: number, ...uses: Step['uses']): Step => ({ uses, delay: delayed });
  const cpu = (work: number) => processes.map((station) => step(0, { station, work }));
  const [cpuOfReads, cpuOfWrites] = [cpu(assumed.readCpu), cpu(assumed.writeCpu)];
  const callsOf = accounts.map((station) => step(delay, { station, work: 1 }));
  const sends = accounts.map((station, account) =>
    all(system.queues, (part) =>
      step(
        delay,
        { station, work: 1 },
        { station: limited(`queue ${account}-${part}`, targets.queueMessages.value), work: 1 },
      ),
    ),
  );
  const append = Math.min(1, (APPENDS_OF_PROCESS * system.processes) / (rate * writes));
  const appends = audit ? [step(delay, { station: audit, work: append })] : [];
  const toPartition = (account: Station | undefined, partition: Station, work: number) =>
    step(delay, ...(account ? [{ station: account, work: 1 }] : []), { station: partition, work });
  const partitionOf = keepMade((key: number) => {
    const owner = owners[slotOfPartition(keys, key)] ?? 0;
    const station = limited(`${key}`, targets.partitionEntities.value);
    const read = toPartition(accounts[owner], station, 1);
    return { owner, read, transaction: toPartition(accounts[owner], station, 1 + entities - calls) };
  });
  const pick = <Value>(values: readonly Value[]) => values[Math.floor(random() * values.length)] as Value;
  const entryOf = entries.map(({ table }) =>
    keepMade((place: number) =>
      toPartition(pick(accounts), limited(`${table} ${place}`, targets.partitionEntities.value), 1),
    ),
  );
  const repeat = (one: Step | undefined, times: number) => (one ? new Array<Step>(times).fill(one) : []);

  const draw = createSampler(keys.shares);
  const request = (): readonly Step[] => {
    const key = draw(random);
    const { owner, read, transaction } = partitionOf(key);
    if (random() >= writes) return [pick(cpuOfReads), read];
    return [
      pick(cpuOfWrites),
      ...repeat(sends[owner]?.[key % system.queues], Math.min(1, cost.queues)),
      ...repeat(callsOf[owner], cost.queues - 1),
      transaction,
      ...repeat(read, calls - 1),
      ...entries.flatMap((entry, index) => {
        const place = Math.floor(random() * (entry.partitions ?? keys.shares.length));
        return repeat(entryOf[index]?.(place), entry.calls);
      }),
      ...appends,
    ];
  };
  const times = { warmUp: WARM_UP, seconds, within: WITHIN };
  const outcome = simulate({ random, arrivals: { rate }, ...times, request, retries: RETRIES });
  return { outcome, seconds: seconds + WITHIN, accounts, processes };
}

interface Served {
  readonly outcome: Outcome;
  /** For which the stations have worked. */
  readonly seconds: number;
  readonly accounts: readonly Station[];
  readonly processes: readonly Station[];
}

function keepMade<Value>(make: (index: number) => Value): (index: number) => Value {
  const made = new Map<number, Value>();
  return (index) => {
    const found = made.get(index);
    if (found !== undefined) return found;
    const value = make(index);
    made.set(index, value);
    return value;
  };
}
