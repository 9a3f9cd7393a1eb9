import { SLOTS } from '../../lib/storage/slots.ts';
import { formatTable } from '../capacity/format-plan.ts';
import { format } from '../capacity/plan.ts';
import { compareWithBench, type Measured } from './bench.ts';
import type { Chart } from './charts.ts';
import { even, type Keys, mild, PARTITIONS, rebalance, skewed, slotShares, spreadSlots, tenant } from './keys.ts';
import { costOfMove, type MoveCost, slotsToMove } from './move.ts';
import { createRandom } from './random.ts';
import { quantile } from './simulate.ts';
import { type Assumptions, planSystem, requestsOf, type System, serveLoad, type Use, usesOf } from './system.ts';

/** The parts of docs/internals/scale.md that a run writes. Each part has seeds of its own. */

export interface Report {
  readonly text: string;
  /** By the name of its file. */
  readonly charts?: Readonly<Record<string, Chart>>;
}

/** The part of all requests that creates an entity. */
const WRITES = 0.1;
const RATES = [10, 100, 1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000];
/** Seconds of a query with a page of 1,000 rows. */
const PAGE_DELAY = 0.05;
/** Rates above are not told apart. */
const FAR = 10_000_000;
/** One account serves no more of a heavier load. */
const MAX_OF_ONE = 100_000;
const ALL_KEYS: readonly Keys[] = [even, mild, skewed, tenant];
const ONE = { accounts: 1, queues: 1, isAuditApart: false };
const milliseconds = (seconds: number) => `${format(seconds * 1_000)} ms`;
const times = (part: number) => `${part.toFixed(2)} times`;
const percent = (part: number) => `${format(part * 100)} %`;

/** The rate at which each limit is reached. */
export function reportLimits(assumed: Assumptions): Report {
  const { targets } = assumed;
  const reached = (what: Use['what'], system: System, keys: Keys) => {
    const rate = 100;
    const { part = 0 } = usesOf({ rate, writes: WRITES, keys }, system, assumed).find((use) => use.what === what) ?? {};
    return rate / part > FAR ? `above ${format(FAR)}` : format(Number((rate / part).toPrecision(4)));
  };
  const one = { ...ONE, processes: targets.instances.value };
  const apart = { ...one, accounts: 2, isAuditApart: true };
  const all = { ...apart, accounts: targets.accounts.value };
  const row = (name: string, what: Use['what'], system: System) => [
    name,
    ...ALL_KEYS.map((keys) => reached(what, system, keys)),
  ];
  const systems = [one, ...RATES.slice(1).map((rate) => planSystem({ rate, writes: WRITES, keys: even }, assumed))];
  const uses = (keys: Keys, isOne: boolean) =>
    RATES.map((rate, index) => {
      const planned = systems[index] ?? one;
      const system = isOne ? one : { ...planned, isAuditApart: true };
      return new Map(usesOf({ rate, writes: WRITES, keys }, system, assumed).map(({ what, part }) => [what, part]));
    });
  const names: readonly (readonly [string, Use['what']])[] = [
    ['account', 'account'],
    ['queue', 'queue'],
    ['busiest partition', 'partition'],
    ['audit log', 'account of the audit log'],
    ['processes', 'process'],
  ];
  const panel = (title: string, keys: Keys, isOne: boolean) => {
    const found = uses(keys, isOne);
    const used = names.filter(([, what]) => found.every((of) => of.has(what)));
    const lines = used.map(([name, what]) => ({
      name,
      values: found.map((of) => Number(((of.get(what) ?? 0) * 100).toPrecision(3))),
    }));
    return { title, lines };
  };
  return {
    text: formatTable(
      ['Requests a second at which it is reached', ...ALL_KEYS.map(({ name }) => name)],
      [
        row('The only account, 20,000 requests a second', 'account', one),
        row('The only queue, 2,000 messages a second', 'queue', one),
        row('The busiest partition, 2,000 entities a second', 'partition', one),
        row('The busiest of 256 partitions of an index', 'partition of an index', one),
        row('An account for the audit log alone', 'account of the audit log', apart),
        row(`${format(targets.instances.value)} processes`, 'process', one),
        row(`The busiest of ${format(targets.accounts.value)} accounts`, 'account', all),
      ],
    ),
    charts: {
      limits: {
        title: 'Used part of each limit, in percent',
        x: { name: 'requests a second', values: RATES },
        y: '%',
        isLogarithmic: true,
        limit: 100,
        panelWidth: 400,
        panelHeight: 250,
        panels: [
          panel(`One account and queue, ${skewed.name}`, skewed, true),
          panel(`As many as needed, ${skewed.name}`, skewed, false),
        ],
      },
    },
  };
}

/** What is served, and how fast. */
export function reportServed(assumed: Assumptions): Report {
  const variants = [
    { name: 'one account', keys: even, isOne: true },
    { name: 'as many as needed', keys: even, isOne: false },
    { name: `as many as needed, ${skewed.name}`, keys: skewed, isOne: false },
  ];
  const rows: string[][] = [];
  const lines = variants.map(({ name }) => ({ name, values: [] as number[] }));
  for (const [index, rate] of RATES.entries())
    for (const [nth, { name, keys, isOne }] of variants.entries()) {
      if (isOne && rate > MAX_OF_ONE) continue;
      const load = { rate, writes: WRITES, keys };
      const system = { ...planSystem(load, assumed), ...(isOne ? ONE : {}) };
      const { outcome } = serveLoad(load, system, assumed, createRandom(100 * nth + index));
      const served = outcome.served / outcome.begun;
      lines[nth]?.values.push(Number((served * 100).toPrecision(3)));
      const [first] = usesOf(load, system, assumed).toSorted((one, other) => other.part - one.part);
      rows.push([
        format(rate),
        name,
        format(system.accounts + (system.isAuditApart ? 1 : 0)),
        format(system.accounts * system.queues),
        format(system.processes),
        first ? `${first.what}, ${percent(first.part)}` : '',
        percent(served),
        milliseconds(quantile(outcome.times, 0.5)),
        milliseconds(quantile(outcome.times, 0.99)),
      ]);
    }
  return {
    text: formatTable(
      [
        'Requests a second',
        'System and keys',
        'Accounts',
        'Queues',
        'Processes',
        'Most used limit',
        'Served',
        'p50',
        'p99',
      ],
      rows,
    ),
    charts: {
      served: {
        title: 'Requests that are served within half a second, in percent',
        x: { name: 'requests a second', values: RATES },
        y: '%',
        panelWidth: 600,
        panelHeight: 220,
        panels: [{ title: '', lines }],
      },
    },
  };
}

/** Two moves: to a further account, and from a busy account. */
export function reportGain(assumed: Assumptions): Report {
  const shares = slotShares(skewed);
  const balanced = [4, 16, 64].map((accounts) => {
    const { peaks } = rebalance(shares, spreadSlots(accounts), accounts);
    const hottest = Math.max(...shares) * accounts;
    return [format(accounts), times(peaks[0] ?? 0), format(peaks.length - 1), times(peaks.at(-1) ?? 0), times(hottest)];
  });
  const before = { ...ONE, accounts: 3, isAuditApart: true, queues: 2, processes: 200 };
  const rate = Math.floor((3 * 1.2 * assumed.targets.accountRequests.value) / requestsOf(assumed, WRITES) / 100) * 100;
  const load = { rate, writes: WRITES, keys: even };
  const after = { ...before, accounts: 4 };
  const further = [before, after].map((system, index) => {
    const { outcome } = serveLoad(load, system, assumed, createRandom(1_000 + index));
    const account = usesOf(load, system, assumed).find(({ what }) => what === 'account');
    return [
      format(system.accounts),
      percent(account?.part ?? 0),
      percent(outcome.served / outcome.begun),
      milliseconds(quantile(outcome.times, 0.5)),
      milliseconds(quantile(outcome.times, 0.99)),
    ];
  });
  return {
    text: [
      `A fourth account gets ${format(slotsToMove(3))} of ${format(SLOTS)} slots, at ${format(rate)} requests a second with even keys:`,
      formatTable(['Accounts', 'Used part of the busiest', 'Served', 'p50', 'p99'], further),
      `Slots move from the busiest to the least busy account, with the keys of ${skewed.name}. A share is that of the busiest account, or of the busiest slot, to the mean of the accounts:`,
      formatTable(
        ['Accounts', 'Share before', 'Slots that move', 'Share after', 'Share of the busiest slot'],
        balanced,
      ),
    ].join('\n\n'),
  };
}

/** What a move to a fourth account takes. */
export function reportMoves(assumed: Assumptions): Report {
  const ownedSlots = Math.round(SLOTS / 3);
  const SIZES = [100_000, 1_000_000, 10_000_000, 100_000_000];
  const GROUP = 32;
  const cost = (rows: number, rowsOfPartition: number, together: number): MoveCost =>
    costOfMove({
      rows,
      rowsOfTarget: 0,
      rowsOfPartition,
      slots: Math.round(slotsToMove(3) / 3),
      ownedSlots,
      pageDelay: PAGE_DELAY,
      delay: assumed.delay,
      writes: 1_000,
      together,
    });
  const sum = ({ transactions }: MoveCost) => Object.values(transactions).reduce((total, count) => total + count, 0);
  const rows = SIZES.flatMap((size) =>
    [1, 100].flatMap((rowsOfPartition) =>
      [SLOTS, GROUP].map((together) => {
        const move = cost(size, rowsOfPartition, together);
        return [
          format(size),
          format(rowsOfPartition),
          together === SLOTS ? 'all' : format(together),
          `${format(move.seconds / 60)} min`,
          milliseconds(move.pause),
          format(move.opened),
          format(sum(move)),
        ];
      }),
    ),
  );
  const lines = (of: (move: MoveCost) => number) =>
    [
      { name: 'all, 1 row', rowsOfPartition: 1, together: SLOTS },
      { name: 'by 32, 1 row', rowsOfPartition: 1, together: GROUP },
      { name: 'all, 100 rows', rowsOfPartition: 100, together: SLOTS },
      { name: 'by 32, 100 rows', rowsOfPartition: 100, together: GROUP },
    ].map(({ name, rowsOfPartition, together }) => ({
      name,
      values: SIZES.map((size) => Number(of(cost(size, rowsOfPartition, together)).toPrecision(3))),
    }));
  return {
    text: formatTable(
      [
        'Rows of the account',
        'Rows of a partition',
        'Slots together',
        'Time',
        'Longest pause',
        'Partitions that are opened',
        'Transactions',
      ],
      rows,
    ),
    charts: {
      moves: {
        title: 'A quarter of the slots, together or by 32, with 1 or 100 rows of a partition',
        x: { name: 'rows of the account', values: SIZES },
        y: '',
        isLogarithmic: true,
        panelWidth: 400,
        panelHeight: 250,
        panels: [
          { title: 'minutes', lines: lines(({ seconds }) => seconds / 60) },
          { title: 'pause of writes in a slot, seconds', lines: lines(({ pause }) => pause) },
        ],
      },
    },
  };
}

/** The model beside the bench. */
export function reportBench(bench: readonly Measured[]): Report {
  const difference = (model: number, measured: number) => {
    const part = Math.round((model / measured - 1) * 100);
    return `${format(model)} : ${format(measured)}, ${part > 0 ? '+' : ''}${part} %`;
  };
  return {
    text: formatTable(
      ['Request', 'Callers', 'A second', 'p50, ms', 'p99, ms'],
      compareWithBench(bench, createRandom(2_000)).map(({ measured: { work, callers, product }, ...model }) => [
        work,
        format(callers),
        difference(model.perSecond, product.perSecond),
        difference(model.p50, product.p50),
        difference(model.p99, product.p99),
      ]),
    ),
  };
}

/** The figures that the run assumes. */
export function reportAssumptions(assumed: Assumptions): Report {
  const { targets, cost } = assumed;
  const target = ({ value, unit, source }: (typeof targets)[keyof typeof targets]) => [
    `${format(value)} ${unit}`,
    `[published](${source})`,
  ];
  return {
    text: formatTable(
      ['Figure', 'From'],
      [
        target(targets.accountRequests),
        target(targets.accounts),
        target(targets.partitionEntities),
        target(targets.queueMessages),
        target(targets.instances),
        [
          `${format(assumed.readCpu * 1_000)} ms of CPU for a read, ${format(assumed.writeCpu * 1_000)} ms for a create`,
          'measured with 16 callers: [benchmarks](benchmarks.md#the-product-to-a-bare-handler)',
        ],
        [
          `${cost.read} transaction for a read; ${cost.tables} to tables and ${cost.queues} to queues for a create, and an append to the audit log`,
          'the declaration of `employees`, as [patterns](patterns.md) measures it',
        ],
        [
          `${milliseconds(assumed.delay)} for a call to storage far from its limits, ${milliseconds(PAGE_DELAY)} for a page of 1,000 rows`,
          'assumed',
        ],
        [`${percent(assumed.utilization)} of a target is planned for`, 'assumed'],
        [`${percent(WRITES)} of the requests are creates, the others reads by key`, 'assumed'],
        [`${format(PARTITIONS)} partitions, ${format(SLOTS)} slots`, 'assumed; as in lib/storage'],
      ],
    ),
  };
}
