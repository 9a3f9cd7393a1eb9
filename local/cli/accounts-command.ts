import { type Command, InvalidArgumentError, Option } from 'commander';
import { commandLine } from '../../lib/command-line.ts';
import type { PlacedLayer } from '../../lib/define/places/placement.ts';
import { arrangeLayers, changedPlacements, planLayers, planToLayer0 } from '../../lib/operations/layers.ts';
import { abortMoves, cleanUp, moveBack, moveSlots, resumeMoves } from '../../lib/operations/move-slots.ts';
import type { MoveProgress, Work } from '../../lib/operations/mover-hold.ts';
import { readAccountStates } from '../../lib/operations/overview.ts';
import {
  layersIn,
  type Placement,
  planBalance,
  readPlacement,
  severalAccounts,
  slotsIn,
  stateIn,
} from '../../lib/operations/placement.ts';
import { MOVE_TIMING, type MoveReport, type MoveTiming } from '../../lib/operations/slot-mover.ts';
import { awayIn, unlessAway } from '../../lib/storage/errors.ts';
import { nameOfMove } from '../../lib/storage/fence-rows.ts';
import { WAIT_MS } from '../../lib/storage/slot-map.ts';
import {
  indexIn,
  isOwned,
  newestLayers,
  numbersOf,
  readOwned,
  SYSTEM_TABLE,
  withLayers,
} from '../../lib/storage/slot-row.ts';
import { placeOf, SLOTS, slotAt, subtractLayers } from '../../lib/storage/slots.ts';
import type { Accounts as Several } from '../../lib/storage/storage.ts';
import type { OpenAccounts } from './open-accounts.ts';
import { INTERRUPTED_EXIT_CODE, startProgress } from './progress.ts';

/** Where the commands find the accounts. Tests have accounts and limits of their own. */
interface Accounts {
  readonly open: (folder: string) => Promise<OpenAccounts>;
  readonly timing?: MoveTiming;
}

interface GlobalOptions {
  readonly data: string;
  readonly skipGrants?: true;
}

interface MoveOptions {
  readonly to: string;
  readonly slots?: readonly string[];
  readonly key?: readonly string[];
  readonly share?: number;
  readonly closed?: true;
}

/** A longer wait is for grants to write. */
const LATE_MS = MOVE_TIMING.leaseMs + MOVE_TIMING.lateMs;

/** Adds the commands that move slots between storage accounts. */
export function addAccountsCommands(program: Command, { open, timing }: Accounts): Command {
  const storageOf = async (command: Command) => {
    const { data, skipGrants } = command.optsWithGlobals<GlobalOptions>();
    const { storage, resources, grantedForMs, placed } = await open(data);
    const waits = { grantedForMs: skipGrants ? 0 : grantedForMs };
    return { storage, placed, given: { resources, ...waits, ...(timing ? { timing } : {}) } };
  };
  program.option(
    '--skip-grants',
    'do not wait until grants to write have expired, which takes 15 minutes if clients of the model may write: use it if none writes now',
  );
  program
    .command('status')
    .description('Lists the accounts, the slots that they own, where tenants and entities are, and the moves.')
    .action(async (_, command: Command) => {
      const { storage, placed } = await storageOf(command);
      const { placements, away } = await readThere(severalAccounts(storage));
      for (const line of describePlacement(placements, placed, away)) console.log(line);
      if (away.length > 0) process.exitCode = 1;
      const { mover, advice } = await readAccountStates({ storage, now: Date.now });
      if (mover) console.log(describeMover(mover));
      for (const line of advice) console.log(line);
    });
  program
    .command('move')
    .description('Moves slots to an account while the app serves.')
    .requiredOption('--to <account>', 'the account that gets them')
    .option('--slots <slots>', 'slots, separated by commas, such as 07a,0f1', toSlots)
    .option('--key <key...>', 'partition keys, whose slots move with all that is in them')
    .addOption(new Option('--share <number>', 'a part of all slots, such as 0.25').argParser(toShare))
    .option(
      '--closed',
      `let writes to the slots wait until they have moved, which takes more than ${LATE_MS / 1_000} s; a write fails with 503 after ${WAIT_MS / 1_000} s: without fences, for an hour of low load`,
    )
    .action(async (options: MoveOptions, command: Command) => {
      const { storage, given } = await storageOf(command);
      const slots = chooseSlots(await readPlacement(severalAccounts(storage)), given.resources.tables, options);
      await show((shown) =>
        moveSlots(storage, [{ slots, to: options.to }], { ...given, ...shown, isClosed: options.closed ?? false }),
      );
    });
  program
    .command('balance')
    .description(
      'Brings what the model places to its account, and spreads all other slots evenly with as few moves as possible.',
    )
    .action(async (_, command: Command) => {
      const { storage, placed, given } = await storageOf(command);
      const hasLayers = layersIn(await readPlacement(severalAccounts(storage))).length > 0;
      if (placed.length > 0 || hasLayers) await arrangeLayers(storage, placed, given);
      const placements = await readPlacement(severalAccounts(storage));
      const byAccount = Map.groupBy([...planLayers(placements, placed), ...planBalance(placements)], ({ to }) => to);
      const plans = [...byAccount].map(([to, parts]) => ({ slots: parts.flatMap(({ slots }) => slots), to }));
      if (plans.length === 0) return console.log('The slots are spread evenly.');
      for (const { slots, to } of plans) console.log(`${slots.length} slots to ${to}.`);
      await show((shown) => moveSlots(storage, plans, { ...given, ...shown }));
    });
  program
    .command('remove')
    .description('Brings what was placed under a name to the accounts of all other slots, and forgets the name.')
    .argument('<name>', 'the name, which the model no longer places')
    .action(async (name: string, _, command: Command) => {
      const { storage, placed, given } = await storageOf(command);
      if (placed.some(({ layer }) => layer.name === name))
        throw new Error(`The model places "${name}". Remove it from placement first.`);
      const accounts = severalAccounts(storage);
      const find = async () => new Set(layersIn(await readPlacement(accounts)).map((layer) => layer.name));
      const known = await find();
      if (!known.has(name))
        throw new Error(`The accounts have no placement "${name}"; they have ${[...known].join(', ') || 'none'}.`);
      await arrangeLayers(storage, placed, given);
      const plans = planToLayer0(await readPlacement(accounts), name);
      if (plans.length > 0) await show((shown) => moveSlots(storage, plans, { ...given, ...shown }));
      await arrangeLayers(storage, placed, { ...given, isTidying: true });
      if (!(await find()).has(name)) return console.log(`"${name}" is removed.`);
      console.log(`The name goes with what its slots have left: run ${commandLine('accounts', 'clean-up')}.`);
    });
  for (const [name, description, work] of [
    ['resume', 'Continues the moves that a command has left.', resumeMoves],
    ['abort', 'Ends the moves: slots that have not been handed over stay where they are.', abortMoves],
  ] as const)
    program
      .command(name)
      .description(description)
      .action(async (_, command: Command) => {
        const { storage, given } = await storageOf(command);
        await show((shown) => work(storage, { ...given, ...shown }), { mayStay: name === 'abort' });
      });
  program
    .command('back')
    .description('Moves slots back to the accounts that they have left, with what was written since.')
    .argument('[move]', 'the id of a move, which "status" lists; by default all that are not cleaned up')
    .action(async (move: string | undefined, _, command: Command) => {
      const { storage, given } = await storageOf(command);
      const placements = await readPlacement(severalAccounts(storage));
      const moves = placements.flatMap(({ owned }) => [...owned.moves.values()].map((state) => state.move));
      const named = moves.find((each) => each === move || nameOfMove(each) === move);
      if (move !== undefined && named === undefined)
        throw new Error(`Move "${move}" not found: ${commandLine('accounts', 'status')} lists those that can return.`);
      await show((shown) => moveBack(storage, named, { ...given, ...shown }));
    });
  program
    .command('clean-up')
    .description('Deletes what slots have left at their former accounts. There is no way back then.')
    .action(async (_, command: Command) => {
      const { storage, placed, given } = await storageOf(command);
      const { slots, rows, blobs, kept } = await cleanUp(storage, given);
      console.log(`${slots} slots cleaned up, ${rows} rows and ${blobs} blobs deleted.`);
      if (kept > 0)
        console.log(`${kept} slots have moved less than 20 minutes ago: clients may still use grants there.`);
      const readNames = async () =>
        new Set(layersIn(await readPlacement(severalAccounts(storage))).map((layer) => layer.name));
      const before = await readNames();
      if (before.size > 0) await arrangeLayers(storage, placed, { ...given, isTidying: true });
      const after = await readNames();
      for (const name of before) if (!after.has(name)) console.log(`"${name}" is removed.`);
    });
  return program;
}

function toSlots(text: string): string[] {
  const slots = text.toLowerCase().split(',');
  if (slots.every((slot) => /^(\d+-)?[0-9a-f]{3}$/.test(slot))) return slots;
  throw new InvalidArgumentError('A slot has three hexadecimal digits, such as 07a, or 1-07a in the layer 1.');
}

function toShare(text: string): number {
  const share = Number(text);
  if (share > 0 && share <= 1) return share;
  throw new InvalidArgumentError('A number above 0, up to 1, is needed.');
}

/**
 * Returns the slots that the options name: of a key, the one of each layer that has the key in a table. For a share, the accounts that own the
 * most slots give them.
 */
function chooseSlots(
  placements: readonly Placement[],
  tables: readonly string[],
  { slots, key, share, to }: MoveOptions,
): string[] {
  if (slots) return [...slots];
  if (key) {
    const layers = newestLayers(placements.map(({ owned }) => owned));
    const ofApp = tables.filter((table) => table !== SYSTEM_TABLE);
    return [...new Set(key.flatMap((each) => ofApp.map((table) => slotAt(indexIn({ layers }, placeOf(table, each))))))];
  }
  if (share === undefined) throw new Error('Name what to move: --slots, --key or --share.');
  const owned = placements
    .filter(({ account }) => account.name !== to)
    .map((placement) => slotsIn(placement, 'at rest'));
  const chosen: string[] = [];
  while (chosen.length < Math.round(share * SLOTS)) {
    const most = owned.reduce((one, other) => (other.length > one.length ? other : one), []);
    const slot = most.pop();
    if (slot === undefined) break;
    chosen.push(slot);
  }
  return chosen.sort();
}

/** What the accounts that respond own, and the names of the others. */
async function readThere(accounts: Several): Promise<{ readonly placements: Placement[]; readonly away: string[] }> {
  const found = await Promise.all(
    accounts.list.map(async (account) => ({ account, ...(await unlessAway(readOwned(account))) })),
  );
  const away = awayIn(found);
  if (away.length === 0) return { placements: await readPlacement(accounts), away };
  const placements = found.flatMap(({ account, result: owned }) => (owned ? [{ account, owned }] : []));
  return { placements, away };
}

/** What the accounts own, and the moves that are under way or can be undone. */
function describePlacement(
  placements: readonly Placement[],
  placed: readonly PlacedLayer[] = [],
  away: readonly string[] = [],
): string[] {
  const lines = placements.map((placement) => {
    const counts = (['at rest', 'fencing', 'draining'] as const).map((phase) => slotsIn(placement, phase).length);
    const [atRest = 0, fencing = 0, draining = 0] = counts;
    const moving = fencing + draining > 0 ? `, ${fencing + draining} of them in motion` : '';
    return `${placement.account.name}: ${atRest + fencing + draining} of ${SLOTS} slots${moving}`;
  });
  lines.push(...away.map((name) => `${name}: does not respond. What it owns is not known`));
  // An account that is away may own the slots of each layer.
  if (away.length === 0) lines.push(...describeLayers(placements, placed));
  for (const placement of placements) {
    const moves = Map.groupBy([...placement.owned.moves], ([, { move }]) => move);
    for (const [move, slots] of moves) {
      const [[index] = [0]] = slots;
      const { to } = placement.owned.moves.get(index) ?? {};
      const gone = slots.filter(([of]) => stateIn(placement, slotAt(of)).phase === 'gone').length;
      lines.push(
        `move ${nameOfMove(move)}: ${gone} of ${slots.length} slots have left ${placement.account.name} for ${to}`,
      );
    }
  }
  const lost = away.length === 0 ? lostSlots(placements) : 0;
  if (lost > 0) lines.push(`${lost} slots are between two accounts`);
  return lines;
}

function describeMover({ isAlive, startedAt, saidAt, phase }: Work & { readonly isAlive: boolean }): string {
  const time = (instant: number) => `${new Date(instant).toISOString().slice(11, 19)} UTC`;
  return isAlive
    ? `A command that began at ${time(startedAt)} moves slots: ${phase}.`
    : `The command that began at ${time(startedAt)} stopped while ${phase}, at ${time(saidAt)}.`;
}

/** Where the slots of each layer are, and what the model says about them. */
function describeLayers(placements: readonly Placement[], placed: readonly PlacedLayer[]): string[] {
  const known = Map.groupBy(layersIn(placements), ({ name, isFormer }) => (isFormer ? `${name} (former)` : name));
  const changed = changedPlacements(placements, placed);
  const balance = commandLine('accounts', 'balance');
  const whereIs = (name: string) => {
    const counts = placements.flatMap(({ account, owned }) => {
      const layers = (known.get(name) ?? []).flatMap(({ number }) => indexesOf(number));
      const { length } = layers.filter((index) => isOwned(owned, index));
      return length > 0 ? [{ account: account.name, length }] : [];
    });
    return counts.length === 1
      ? counts[0]?.account
      : counts.map((of) => `${of.length} slots in ${of.account}`).join(', ');
  };
  const lines = placed.map(({ layer, account }, at) => {
    const { name } = layer;
    const earlier = placed.slice(0, at).map((before) => before.layer);
    if (!known.has(name) && !subtractLayers(layer, earlier))
      return `${name}: nothing. Placements before it have it all`;
    const where = known.has(name) ? whereIs(name) : 'with all others';
    if (where !== account) return `${name}: ${where}. The model places it in ${account}: run ${balance}`;
    return `${name}: ${where}${changed.has(name) ? `. The model has changed what it places: run ${balance}` : ''}`;
  });
  const isPlaced = (name: string) => placed.some(({ layer }) => layer.name === name);
  for (const [of, [first]] of known) {
    const { name, isFormer } = first ?? { name: of, isFormer: false };
    if (isPlaced(of)) continue;
    if (isFormer && planToLayer0(placements, name).length === 0) {
      lines.push(`${of}: with all others. To forget it, run ${commandLine('accounts', 'clean-up')}`);
      continue;
    }
    const command = isPlaced(name) ? 'balance' : `remove ${name}`;
    const advice = `run ${commandLine('accounts', command)}${isFormer ? ', then clean-up' : ''}`;
    lines.push(`${of}: ${whereIs(of)}. The model does not place it: ${advice}`);
  }
  return lines;
}

const indexesOf = (layer: number) => Array.from({ length: SLOTS }, (_, slot) => layer * SLOTS + slot);

function lostSlots(placements: readonly Placement[]): number {
  const layers = newestLayers(placements.map(({ owned }) => owned));
  const rows = placements.map(({ owned }) => withLayers(owned, layers));
  const indexes = numbersOf(layers).flatMap(indexesOf);
  return indexes.filter((index) => !rows.some((owned) => isOwned(owned, index))).length;
}

/** Runs a move with progress, and prints its report. */
async function show(
  work: (shown: {
    readonly onProgress: (now: MoveProgress) => void;
    readonly signal: AbortSignal;
  }) => Promise<MoveReport>,
  { mayStay = false } = {},
): Promise<void> {
  let now: MoveProgress | undefined;
  let rows = 0;
  const progress = startProgress({ rows: () => rows, describe: () => describeProgress(now) });
  const onProgress = (next: MoveProgress) => {
    now = next;
    if (next.what === 'copy') rows += next.rows;
  };
  try {
    const report = await work({ onProgress, signal: progress.signal });
    progress.stop();
    for (const line of describeReport(report)) console.log(line);
    if (report.left.length > 0 && !mayStay) process.exitCode = 1;
  } catch (error) {
    progress.stop();
    if (!progress.signal.aborted) throw error;
    console.error(
      `Stopped. To continue, run ${commandLine('accounts', 'resume')}; to undo, ${commandLine('accounts', 'abort')}.`,
    );
    process.exitCode = INTERRUPTED_EXIT_CODE;
  }
}

function describeProgress(now: MoveProgress | undefined): string {
  switch (now?.what) {
    case 'another mover':
      return `waiting for another mover, at most ${Math.ceil(now.leftMs / 1_000)} s`;
    case 'wait':
      return `waiting ${now.leftMs > LATE_MS ? 'until grants to write have expired' : 'for late requests'}, ${Math.ceil(now.leftMs / 1_000)} s`;
    case 'copy':
      return `comparing ${now.table}, pass ${now.pass}`;
    case 'switch':
      return `${now.slots} of ${now.of} slots handed over`;
    default:
      return 'beginning';
  }
}

export function describeReport({ slots, rows, written, deleted, blobs, pauses, left }: MoveReport): string[] {
  const lines = [
    `${slots} slots moved: ${rows} rows compared, ${written} written, ${deleted} deleted; ${blobs} blobs copied.`,
  ];
  if (pauses.length > 0) {
    const sorted = pauses.toSorted((one, other) => one - other);
    const at = (part: number) => Math.round(sorted[Math.ceil(part * sorted.length) - 1] ?? 0);
    lines.push(`Writes to a slot waited ${at(0.5)} ms (median), ${at(0.99)} ms (99 %), ${at(1)} ms (longest).`);
    if (at(1) > WAIT_MS)
      lines.push(`A write that had waited for ${WAIT_MS / 1_000} s failed with 503, and can be repeated.`);
  }
  if (left.length > 0) lines.push(`${left.length} slots stay where they are: ${left.slice(0, 20).join(', ')}.`);
  return lines;
}
