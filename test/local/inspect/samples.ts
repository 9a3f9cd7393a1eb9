import { z } from 'zod';
import { defineEntity, defineModel, indexEntity, interPartitionIndex } from '../../../lib/index.ts';
import { formatProposal } from '../../../local/inspect/format-proposal.ts';
import type { ProposedKind } from '../../../local/inspect/propose-kind.ts';
import { addIndexes, type Proposal, proposeTables } from '../../../local/inspect/propose-tables.ts';
import type { Sample } from '../../../local/inspect/sample-table.ts';
import type { Model } from '../../kit/define.ts';
import { compareKeys, type StoredRow } from './shapes.ts';

/** The rows of each table as a sample of all. */
function samplesOf(rows: readonly StoredRow[]): Sample[] {
  return [...Map.groupBy(rows, ({ table }) => table)].map(([table, ofTable]) => ({
    table,
    rows: ofTable.toSorted(compareKeys).map((row) => ({ etag: '', ...row })),
    isWhole: true,
    transactions: 1,
  }));
}

export function propose(rows: readonly StoredRow[]): Proposal {
  return addIndexes(proposeTables(samplesOf(rows)));
}

/** The text of the proposal for the rows. */
export function describe(rows: readonly StoredRow[]): string {
  return formatProposal(propose(rows));
}

export function kindNamed({ tables }: Proposal, name: string): ProposedKind {
  const kinds = tables.flatMap((table) => table.kinds);
  const kind = kinds.find((each) => each.name === name);
  if (!kind) throw new Error(`No kind ${name} among ${kinds.map((each) => each.name).join(', ')}.`);
  return kind;
}

/** The schemas of a kind by property, with `?` after those of optional fields. */
export function schemasOf({ fields }: ProposedKind): Record<string, string> {
  return Object.fromEntries(
    fields.map(({ field, property, schema, isOptional }) => [
      property ?? `key ${field}`,
      `${schema}${isOptional ? '?' : ''}`,
    ]),
  );
}

/** The model that a proposal prints. */
export function evaluate(text: string): Model {
  const body = text
    .replace(/^import .*$/gm, '')
    .replace(/^export const model =/m, 'return')
    .replace(/^export const/gm, 'const');
  const define = new Function('z', 'defineEntity', 'defineModel', 'indexEntity', 'interPartitionIndex', body);
  return define(z, defineEntity, defineModel, indexEntity, interPartitionIndex);
}
