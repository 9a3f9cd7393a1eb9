import { addComputed } from '../../local/packs/example-values.ts';
import type { Step } from '../../local/walk/steps.ts';
import { definePlaces, type Entity } from '../kit/define.ts';
import type { ChangeRecord } from '../kit/engine.ts';
import type { Outcome } from './caller.ts';

/** Whether the audit log has each create that was acknowledged, and none that was rejected. */
export interface AuditOracle {
  noteWrite(by: string, entity: Entity, step: Step, outcome: Outcome): void;
  /** A sentence for each key whose records do not agree with what a caller learnt. */
  check(records: readonly ChangeRecord[]): string[];
}

export function createAuditOracle(): AuditOracle {
  /** How many creates of a caller were acknowledged, and how many may have been executed, by caller and key. */
  const known = new Map<string, { acknowledged: number; possible: number }>();
  const nameOf = (by: string, { table, partition, row }: Pick<ChangeRecord, 'table' | 'partition' | 'row'>) =>
    JSON.stringify([by, table, partition, row]);
  return {
    noteWrite(by, entity, { do: write, key = {}, values = {}, actions = [] }, { code, parts, sent }) {
      const creations = [
        ...(write === 'create' || write === 'put' ? [{ ...values, ...key }] : []),
        ...actions.flatMap(({ create, put }) => [create ?? put].filter((given) => given !== undefined)),
      ];
      if (entity.series || entity.period) return;
      for (const given of creations) {
        let address: ReturnType<typeof definePlaces.addressOf>;
        try {
          address = definePlaces.addressOf(entity, addComputed(entity, given));
        } catch {
          // No entity has such a key.
          continue;
        }
        const name = nameOf(by, address);
        const counts = known.get(name) ?? { acknowledged: 0, possible: 0 };
        known.set(name, counts);
        // A request that is repeated may find its own change.
        if (write === 'create' && code === 'ok' && sent === 1) counts.acknowledged += 1;
        const mayBeDone = code === 'ok' || code === 'unknown' || sent > 1 || parts !== undefined;
        if (mayBeDone) counts.possible += Math.max(1, sent);
      }
    },
    check(records) {
      const recorded = new Map<string, number>();
      for (const record of records) {
        if (record.operation !== 'create' || record.outcome === 'unknown') continue;
        const name = nameOf(record.by, record);
        recorded.set(name, 1 + (recorded.get(name) ?? 0));
      }
      return [...known].flatMap(([name, { acknowledged, possible }]) => {
        const count = recorded.get(name) ?? 0;
        if (count >= acknowledged && count <= possible) return [];
        return `the audit log has ${count} creates of ${name}: ${acknowledged} were acknowledged, and ${possible} may have been executed`;
      });
    },
  };
}
