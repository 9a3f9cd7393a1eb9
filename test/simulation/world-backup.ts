import { baseValues } from '../kit/base.ts';
import { engineCore } from '../kit/engine.ts';
import { operationsBackup } from '../kit/operations.ts';
import { type Storage, storageAccounts, storageJournal, storageKeys } from '../kit/storage.ts';
import type { Cuts, createBackupOracle } from './backup-oracle.ts';
import type { Plan } from './plan.ts';
import {
  compareRestored,
  hasUnfinished,
  openPlace,
  planRestore,
  problemsOf,
  restoreTo,
  situationsOf,
} from './restores.ts';
import { createChance } from './world/chance.ts';
import type { Network } from './world/network.ts';
import { createProcess, elapsed, runIn, type VirtualProcess, wait } from './world/virtual-world.ts';

/** What works on the backup of a world, and what is restored from it at the end. */

interface WorldBackup {
  readonly seed: number;
  /** The model of the release that runs. */
  readonly model: () => Plan['model'];
  readonly network: Network;
  /** How many accounts the app knows. */
  readonly known: () => number;
  readonly keyFile: string;
  readonly backedUp: ReturnType<typeof createBackupOracle> | undefined;
  readonly log: (line: string) => void;
  readonly notice: (situation: string) => void;
}

const HOUR_MS = 60 * baseValues.MINUTE_MS;
/** Of a snapshot that is continued. */
const MOST_ATTEMPTS = 40;
const NEVER = new Promise<false>(() => undefined);

type Restorable = Pick<Cuts, 'statesAt' | 'hasMoved' | 'movedBy'> & {
  readonly moments: readonly string[];
  readonly manifests: readonly { readonly begunAt: string; readonly finishedAt: string }[];
};

/** The storage of an app that knows these accounts. */
export function openAccounts(accounts: Network['direct']): Storage {
  const [only] = accounts;
  return storageAccounts.openStorage(accounts.length === 1 && only ? only : { accounts });
}

export function createWorldBackup({
  seed,
  model: currentModel,
  network,
  known,
  keyFile,
  backedUp,
  log,
  notice,
}: WorldBackup) {
  /** The engine of a process that works on the backup, or of the world itself. */
  function openBackup(process: VirtualProcess | undefined) {
    const account = network.backupFor(process);
    if (!account) throw new Error('The world has no backup.');
    const backup = storageAccounts.openStorage({ accounts: [account] });
    const accounts = process ? network.accountsFor(process) : network.direct;
    const storage = { ...openAccounts(accounts.slice(0, known())), backup };
    return { engine: engineCore.createEngine(storage, { queueParts: currentModel().queueParts }), storage, backup };
  }

  /** Lets processes work on the backup one after another until the work is done: some die. */
  async function workOnBackup(
    name: string,
    diesAt: readonly number[],
    work: (given: ReturnType<typeof openBackup>, process: VirtualProcess) => Promise<boolean>,
  ): Promise<string | undefined> {
    let failure = 'nobody has ended it';
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
      const process = createProcess(`backup-${name}.${attempt}`);
      const nth = diesAt[attempt];
      const died = nth === undefined ? NEVER : network.killAt(process, nth).then(() => false);
      const chance = createChance(seed, name, attempt);
      const done = runIn(process, chance, () => work(openBackup(process), process)).catch((error: unknown) => {
        failure = String(error);
        log(`${elapsed().toFixed(3)} ${process.name}: ${failure}`);
        return false;
      });
      if (await Promise.race([done, died])) {
        notice(`backup: ${name.replace(/\d+$/, '')}`);
        return undefined;
      }
      notice(`backup: ${name.replace(/\d+$/, '')} is continued`);
      await wait(chance.between(10, 5_000));
    }
    return failure;
  }

  const takeSnapshot = async (name: string, { diesAt, forMs }: { diesAt: readonly number[]; forMs: number }) =>
    void (await workOnBackup(name, diesAt, async ({ engine }) => {
      const options = { days: 35, until: Date.now() + forMs, saveEveryMs: 0 };
      return (await operationsBackup.takeSnapshot(engine, currentModel().list, options)).isComplete;
    }));

  /** Restores some moments: any, and those at which something happened. */
  async function restoreCuts(at: Storage, backup: Storage, most: number) {
    const chance = createChance(seed, 'cuts');
    const manifests = await Array.fromAsync(operationsBackup.readManifests({ backup }));
    const first = manifests.at(-1)?.finishedAt;
    if (!backedUp || first === undefined) return undefined;
    const now = Date.now();
    const toTime = (ms: number) => storageJournal.toTime(ms) ?? '';
    const times = [...backedUp.times(), first];
    const choices = [
      () => toTime(Date.parse(first) + chance.next() * (now - Date.parse(first))),
      () => chance.pick(times),
      () => toTime(Date.parse(chance.pick(times)) + chance.pick([-1, 1, 50, 1_000])),
      () => chance.pick(manifests).finishedAt,
      () => toTime(Date.parse(chance.pick(manifests).finishedAt) + chance.pick([-1, 1, -2_000, 2_000])),
    ];
    const moments: string[] = [toTime(now + HOUR_MS)];
    while (moments.length < most) {
      const moment = chance.pick(choices)();
      moments.push(moment < first ? first : moment);
    }
    const compared = await backedUp.compare({ backup, storage: at }, moments, toTime(now + HOUR_MS));
    return { ...compared, moments, manifests };
  }

  /** Restores all rows of some moments, or those of an entity, to other places. */
  async function restorePlaces({ moments, manifests, ...cuts }: Restorable, times: number): Promise<string[]> {
    const model = currentModel();
    const { engine: copier } = openBackup(undefined);
    await operationsBackup.copyToBackup(copier, model.list, { days: 35 });
    const problems: string[] = [];
    const statesOf = (at: string) =>
      cuts.statesAt(at, manifests.find(({ finishedAt }) => finishedAt <= at) ?? { begunAt: at }, true);
    // Moments in the middle of an operation are rare.
    const unfinished = moments.filter((at) => hasUnfinished(statesOf(at)));
    for (let nth = 1; nth <= times; nth += 1) {
      const chance = createChance(seed, 'restore', nth);
      const at = chance.pick(unfinished.length > 0 && chance.isTrue(0.5) ? unfinished : moments);
      const states = statesOf(at);
      const planned = planRestore(model, at, states, chance);
      const name = `restore${nth}`;
      const place = { model, keys: storageKeys.createLocalKeyRing(keyFile), name, place: planned.place };
      const said: string[] = [];
      const failure = await workOnBackup(name, planned.diesAt, async ({ storage, backup }, process) => {
        const target = openPlace(network, place, process);
        const report = await restoreTo(target, model, planned, { backup, storage });
        said.push(...problemsOf(report, planned));
        for (const what of situationsOf(report, planned)) notice(what);
        return true;
      });
      if (failure !== undefined) said.push(failure);
      else
        said.push(
          ...(await compareRestored(openPlace(network, place, undefined), model, { plan: planned, states, ...cuts })),
        );
      problems.push(...said.map((text) => `A restore, ${JSON.stringify(planned)}: ${text}`));
    }
    return problems;
  }

  return { openBackup, workOnBackup, takeSnapshot, restoreCuts, restorePlaces };
}
