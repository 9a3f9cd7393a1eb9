import { writeFile } from 'node:fs/promises';
import { Command, InvalidArgumentError, Option } from 'commander';
import { measureCost } from '../../lib/storage/cost.ts';
import { openStorage, type Storage } from '../../lib/storage/storage.ts';
import type { Proposal } from '../inspect/propose-tables.ts';
import { INTERRUPTED_EXIT_CODE, startProgress } from './progress.ts';
import { completeConnection } from './tables-account.ts';

interface Options {
  readonly connection?: string;
  readonly account?: string;
  readonly table?: readonly string[];
  readonly sample: number;
  readonly reads: number;
  readonly out?: string;
}

/** Where the command finds the account. Tests have one of their own. */
type Open = (options: Pick<Options, 'connection' | 'account'>) => Promise<Storage>;

/** Creates the command that proposes declarations for tables of another program. */
export function createInspectCommand(open: Open = openAccount): Command {
  return new Command()
    .description(
      'Reads a sample of the tables that another program has filled, and proposes their declarations as a TypeScript file.',
    )
    .addOption(
      new Option(
        '--connection <string>',
        'the connection string of the storage account; prefer the variable, which other users cannot see in the process list',
      ).env('INSPECT_CONNECTION'),
    )
    .option(
      '--account <name>',
      'the name of a storage account that whoever is signed in to the Azure CLI may read, in place of a connection string',
    )
    .option('--table <name...>', 'only these tables')
    .option('--sample <rows>', 'the most rows of each table', toNumber, 2_000)
    .option('--reads <number>', 'the most storage transactions for each table', toNumber, 100)
    .option('--out <file>', 'write to this file instead')
    .showHelpAfterError()
    .action(async (options: Options) => inspect(await open(options), options));
}

async function inspect(storage: Storage, { table: tables, sample: rows, reads, out }: Options): Promise<void> {
  let count = 0;
  let current = '';
  const progress = startProgress({ rows: () => count, describe: () => current });
  const onRead = (table: string, read: number) => {
    count += read;
    current = table;
  };
  try {
    // Loaded here, as no other command needs it.
    const [{ inspectAccount }, { formatProposal }] = await Promise.all([
      import('../inspect/inspect-account.ts'),
      import('../inspect/format-proposal.ts'),
    ]);
    const { proposal, skipped, transactions } = await measureCost(async (cost) => ({
      ...(await inspectAccount(storage, { tables, rows, reads, signal: progress.signal, onRead })),
      transactions: cost.transactions,
    }));
    progress.stop();
    for (const { table, reason } of skipped) console.error(`${table} is not read: ${reason}.`);
    const text = formatProposal(proposal);
    if (out === undefined) process.stdout.write(text);
    else await writeFile(out, text);
    console.error(describeCost(proposal, transactions));
    if (progress.signal.aborted) process.exitCode = INTERRUPTED_EXIT_CODE;
  } finally {
    progress.stop();
  }
}

function describeCost({ tables }: Proposal, transactions: number): string {
  const rows = tables.reduce((sum, { sample }) => sum + sample.rows.length, 0);
  const format = (value: number) => value.toLocaleString('en-US');
  return `${format(rows)} rows of ${format(tables.length)} tables read, ${format(transactions)} storage transactions.`;
}

async function openAccount({ connection, account }: Pick<Options, 'connection' | 'account'>): Promise<Storage> {
  if (connection !== undefined) return openStorage({ connectionString: completeConnection(connection) });
  if (account === undefined)
    throw new Error('Name the storage account: --connection, INSPECT_CONNECTION or --account.');
  const at = (service: string) => `https://${account}.${service}.core.windows.net`;
  const { AzureCliCredential } = await import('@azure/identity');
  return openStorage({
    tables: at('table'),
    queues: at('queue'),
    blobs: at('blob'),
    credential: new AzureCliCredential(),
  });
}

function toNumber(text: string): number {
  const number = Number(text);
  if (Number.isInteger(number) && number >= 1) return number;
  throw new InvalidArgumentError('A whole number from 1 is needed.');
}
