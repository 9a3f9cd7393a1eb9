import { RowkeyError, type Values } from '../../lib/index.ts';
import { engineCore } from '../kit/engine.ts';
import { operationsBackup, operationsCheck } from '../kit/operations.ts';
import { storageKeys } from '../kit/storage.ts';
import type { createBackupOracle } from './backup-oracle.ts';
import type { Event } from './event.ts';
import type { createHistory } from './history.ts';
import type { Plan } from './plan.ts';
import type { createRulesOracle } from './rules-oracle.ts';
import { createChance } from './world/chance.ts';
import { type Network, NO_FAULTS } from './world/network.ts';
import { createProcess, elapsed, runIn, VirtualTimer, wait } from './world/virtual-world.ts';
import { openAccounts } from './world-backup.ts';

/** An operator loads an entity before clients write. A process that loads dies, or stands still until another one has begun, and the load is run again. */

type Import = Extract<Event, { do: 'import' }>;

interface BulkImport {
  readonly plan: Plan;
  readonly model: () => Plan['model'];
  readonly network: Network;
  /** How many accounts the app knows. */
  readonly known: () => number;
  readonly keyFile: string;
  readonly history: ReturnType<typeof createHistory>;
  readonly rules: ReturnType<typeof createRulesOracle> | undefined;
  readonly backedUp: ReturnType<typeof createBackupOracle> | undefined;
  readonly log: (line: string) => void;
  readonly notice: (situation: string) => void;
  readonly violate: (problem: string) => void;
}

const WINDOW_ROWS = 7;
const MOST_ATTEMPTS = 40;
/** A run that meets a fault begins again with its first row: later ones meet none. */
const FAULTY_ATTEMPTS = 10;
const AGAIN_AFTER_MS = 5_000;

export function createBulkImport(options: BulkImport) {
  const { plan, model, network, known, keyFile, history, rules, backedUp, log, notice, violate } = options;

  return async ({ of, rows, diesAt, standsAfterMs, standsForMs = 0 }: Import, nth: number): Promise<void> => {
    const entity = model().list.find(({ name }) => name === of);
    const last = plan.model.list.find(({ name }) => name === of);
    if (!entity || !last) return;
    const begun = elapsed();
    const steps = rows.map((values) => ({ of, do: 'create', values }) as const);
    for (const step of steps) rules?.noteWrite(step, begun);
    const standing: Promise<unknown>[] = [];
    /** The codes of the rows that the last run has rejected. */
    let rejected = new Map<number, string>();
    const { faults } = network;
    for (let attempt = 0; ; attempt += 1) {
      if (attempt === MOST_ATTEMPTS) return violate(`The load of ${of} does not end.`);
      if (attempt === FAULTY_ATTEMPTS) network.faults = NO_FAULTS;
      const process = createProcess(`p.import${nth}.${attempt}`);
      const chance = createChance(plan.seed, 'import', nth, attempt);
      backedUp?.begin(chance, `import ${nth}`);
      const codes = new Map<number, string>();
      const load = () => {
        const plain = openAccounts(network.accountsFor(process).slice(0, known()));
        const account = network.backupFor(process);
        const backup = account && openAccounts([account]);
        const given = backup && {
          backup,
          journal: operationsBackup.createJournal({ backup, storage: plain }, model().list),
        };
        const engine = engineCore.createEngine(
          { ...plain, ...given },
          {
            keys: storageKeys.createLocalKeyRing(keyFile),
            queueParts: model().queueParts,
          },
        );
        return operationsCheck.bulkLoad(engine, entity, each(rows), {
          windowRows: WINDOW_ROWS,
          onRejected: ({ position, error }) => void codes.set(position, error.code),
        });
      };
      const done = runIn(process, chance, load).then(
        () => 'done',
        (error: unknown) => {
          log(`${elapsed().toFixed(3)} ${process.name}: ${error}`);
          return error instanceof RowkeyError ? error.code : 'failed';
        },
      );
      const ends: Promise<string>[] = [done];
      const dies = diesAt[attempt];
      if (dies !== undefined) ends.push(network.killAt(process, dies).then(() => 'died'));
      else if (attempt === diesAt.length && standsAfterMs !== undefined) {
        const stands = Promise.withResolvers<string>();
        new VirtualTimer(() => {
          process.asleepUntil = elapsed() + standsForMs;
          stands.resolve('stands still');
        }, standsAfterMs);
        ends.push(stands.promise);
        standing.push(done);
      }
      const end = await Promise.race(ends);
      notice(`import: ${end}`);
      if (end !== 'busy' && end !== 'wrong-operation') rejected = codes;
      if (end === 'done') {
        backedUp?.rely(chance, `the end of the load of ${of}`);
        backedUp?.relyOnFound(chance, `the load of ${of},`);
        break;
      }
      // The run before had ended, and its process died before it could say so.
      if (end === 'wrong-operation' && attempt > 0) break;
      await wait(AGAIN_AFTER_MS);
    }
    await Promise.all(standing);
    network.faults = faults;
    for (const [position, step] of steps.entries()) {
      const code = rejected.get(position) ?? 'ok';
      notice(`import: row ${code}`);
      history.addWrite(last, step, { nth, begun, ended: elapsed(), outcome: { code, sent: 1 } });
    }
  };
}

async function* each(rows: readonly Values[]): AsyncGenerator<Values> {
  yield* rows;
}
