import { z } from 'zod';
import { ROW_TYPES, SYSTEM_PARTITIONS, SYSTEM_ROWS } from '../../base/engine-names.ts';
import type { Engine } from '../../engine/engine.ts';
import { unlessTableMissing } from '../../engine/period-tables.ts';
import { type Properties, readRange, submit } from '../../storage/rows.ts';
import { SYSTEM_TABLE } from '../../storage/slot-row.ts';

/** How the last drill and the last verification of the backup ended: rows of the engine's own state, of which a restore brings back none. */

const PARTITION = { table: SYSTEM_TABLE, partition: SYSTEM_PARTITIONS.drill } as const;

const Drill = z
  .object({ At: z.string(), Partitions: z.int(), Rows: z.int(), Differences: z.int() })
  .transform(({ At, Partitions, Rows, Differences }) => ({
    at: At,
    partitions: Partitions,
    rows: Rows,
    differences: Differences,
  }));
const Verification = z
  .object({ At: z.string(), Problems: z.int() })
  .transform(({ At, Problems }) => ({ at: At, problems: Problems }));

export interface CheckResults {
  readonly drill?: z.infer<typeof Drill> | undefined;
  readonly verification?: z.infer<typeof Verification> | undefined;
}

export async function recordDrill(engine: Engine, properties: z.input<typeof Drill>): Promise<void> {
  await record(engine, { row: SYSTEM_ROWS.drilled, EntityType: ROW_TYPES.drill, ...properties });
}

export async function recordVerification(engine: Engine, properties: z.input<typeof Verification>): Promise<void> {
  await record(engine, { row: SYSTEM_ROWS.verified, EntityType: ROW_TYPES.verification, ...properties });
}

async function record(
  { storage }: Engine,
  { row, ...properties }: Properties & { readonly row: string },
): Promise<void> {
  await submit(storage, { ...PARTITION, actions: [{ kind: 'upsert', row, properties }], isRepeatable: true });
}

/** The last results: one storage transaction. */
export async function readCheckResults({ storage }: Engine): Promise<CheckResults> {
  const { rows } = await unlessTableMissing(readRange(storage, { ...PARTITION, from: '' }), { rows: [] });
  const propertiesOf = (name: string) => rows.find(({ row }) => row === name)?.properties;
  return {
    drill: Drill.safeParse(propertiesOf(SYSTEM_ROWS.drilled)).data,
    verification: Verification.safeParse(propertiesOf(SYSTEM_ROWS.verified)).data,
  };
}
