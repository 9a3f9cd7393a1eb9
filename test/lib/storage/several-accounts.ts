import { createHttpHeaders, type PipelineRequest, RestError } from '@azure/core-rest-pipeline';
import { createMemoryStorage } from '../../../lib/testing/index.ts';
import type { Internal } from '../../kit/internal.ts';
import { type Account, type Storage, storageAccounts, storageSlots, storageTables } from '../../kit/storage.ts';

export const TABLE = 'things';
/** No other program has rows in the tables. */
export const RESOURCES = {
  tables: [TABLE, storageSlots.SYSTEM_TABLE],
  queues: ['work'],
  containers: ['files'],
  clientTables: [],
  isOwnRow: () => true,
};
export const NAMES = ['first', 'second', 'third'];

export type Several = Storage & { readonly accounts: Internal['Accounts'] };

/** What happens to a request: a process that has crashed sends no other one. */
type Fault = 'crash before' | 'crash after' | 'reply lost';
export const FAULTS: readonly Fault[] = ['crash before', 'crash after', 'reply lost'];

/** Accounts in memory, each of which can be stopped. Their clocks may be ahead, by milliseconds. */
export function createAccounts(names = NAMES, clocksMs: readonly number[] = []) {
  // A test may replace the clock of the processes, which is not that of storage.
  const clock = Date.now;
  const memories = names.map((account, index) =>
    createMemoryStorage({ account, now: () => clock() + (clocksMs[index] ?? 0) }),
  );
  const requests: { readonly account: string; readonly method: string; readonly url: string }[] = [];
  const stopped = new Set<string>();

  function memoryOf(name: string) {
    const memory = memories[names.indexOf(name)];
    if (!memory) throw new Error(`There is no account ${name}.`);
    return memory;
  }

  /** A process. It sees a fault at one of its calls, counted from 1. */
  function openWith(fault: Fault | undefined, at: number, count = names.length) {
    let calls = 0;
    let hasCrashed = false;
    const crash = () => {
      hasCrashed = true;
      throw new Error('This process is dead.');
    };
    const options = names.slice(0, count).map((name) => {
      const memory = memoryOf(name);
      const sendRequest = async (request: PipelineRequest) => {
        requests.push({ account: name, method: request.method, url: request.url });
        calls += 1;
        const isHere = calls === at;
        if (hasCrashed || (isHere && fault === 'crash before')) crash();
        // The SDK waits as long as the header says before it repeats a request.
        if (stopped.has(name))
          return { request, status: 503, headers: createHttpHeaders({ 'retry-after-ms': '1' }), bodyAsText: '' };
        const response = await memory.httpClient.sendRequest(request);
        if (isHere && fault === 'crash after') crash();
        if (isHere && fault === 'reply lost') throw new RestError('reply lost', { code: 'ECONNRESET', request });
        return response;
      };
      return { name, connectionString: memory.connectionString, httpClient: { sendRequest } };
    });
    const storage = storageAccounts.openStorage({ accounts: options }) as Several;
    return { storage, options, countCalls: () => calls };
  }

  return {
    openWith,
    open: (count?: number) => openWith(undefined, 0, count).storage,
    memories,
    memoryOf,
    requests,
    stopped,
  };
}

/** Creates accounts with the tables of a test. */
export async function provisionAccounts(names?: readonly string[], clocksMs?: readonly number[]) {
  const created = createAccounts(names && [...names], clocksMs);
  const storage = created.open();
  await storageTables.provision(storage, RESOURCES);
  return { ...created, storage };
}

export function accountNamed({ accounts }: Several, name: string): Account {
  const account = accounts.list.find((each) => each.name === name);
  if (!account) throw new Error(`There is no account ${name}.`);
  return account;
}
