import type { Values } from '../../lib/index.ts';
import { addComputed } from '../../local/packs/example-values.ts';
import type { Step } from '../../local/walk/steps.ts';
import { definePlaces, type Entity } from '../kit/define.ts';
import type { ChangeRecord } from '../kit/engine.ts';
import type { Outcome } from './caller.ts';

/** Whether the audit log has each create, delete, grant and read of a steward that was acknowledged, and no create that was rejected. */
export interface AuditOracle {
  noteWrite(by: string, entity: Entity, step: Step, outcome: Outcome): void;
  /** A read of a steward. */
  noteRead(by: string, entity: Entity, key: Values, outcome: Outcome): void;
  noteGrant(by: string, outcome: Outcome): void;
  /** A sentence for each key whose records do not agree with what a caller learnt. */
  check(records: readonly ChangeRecord[]): string[];
}

interface Counts {
  acknowledged: number;
  possible: number;
}
type Audited = 'create' | 'delete' | 'read';

export function createAuditOracle(): AuditOracle {
  /** How many operations of a caller were acknowledged, and how many may have been executed, by operation, caller and key. */
  const known = new Map<string, Counts>();
  const grants: { readonly by: string; readonly until: string }[] = [];
  const nameOf = (
    operation: string,
    by: string,
    { table, partition, row }: Pick<ChangeRecord, 'table' | 'partition' | 'row'>,
  ) => `${operation} of ${JSON.stringify([by, table, partition, row])}`;

  function note(
    operation: Audited,
    { by, entity, key }: { by: string; entity: Entity; key: Values },
    add: Counts,
  ): void {
    let address: ReturnType<typeof definePlaces.addressOf>;
    try {
      address = definePlaces.addressOf(entity, addComputed(entity, key));
    } catch {
      // No entity has such a key.
      return;
    }
    const name = nameOf(operation, by, address);
    const counts = known.get(name) ?? { acknowledged: 0, possible: 0 };
    known.set(name, {
      acknowledged: counts.acknowledged + add.acknowledged,
      possible: counts.possible + add.possible,
    });
  }

  return {
    noteWrite(by, entity, { do: write, key = {}, values = {}, actions = [] }, { code, parts, sent }) {
      if (entity.series || entity.period) return;
      const creations = [
        ...(write === 'create' || write === 'put' ? [{ ...values, ...key }] : []),
        ...actions.flatMap(({ create, put }) => [create ?? put].filter((given) => given !== undefined)),
      ];
      // A request that is repeated may find its own change.
      const isOnce = code === 'ok' && sent === 1;
      const mayBeDone = code === 'ok' || code === 'unknown' || sent > 1 || parts !== undefined;
      const possible = mayBeDone ? Math.max(1, sent) : 0;
      for (const given of creations)
        note('create', { by, entity, key: given }, { acknowledged: write === 'create' && isOnce ? 1 : 0, possible });
      // Other requests delete the entity, too.
      if (write === 'delete' && isOnce)
        note('delete', { by, entity, key }, { acknowledged: 1, possible: Number.POSITIVE_INFINITY });
    },
    noteRead(by, entity, key, { code }) {
      if (code === 'ok') note('read', { by, entity, key }, { acknowledged: 1, possible: Number.POSITIVE_INFINITY });
    },
    noteGrant(by, { code, until }) {
      if (code === 'ok' && until !== undefined) grants.push({ by, until });
    },
    check(records) {
      const recorded = new Map<string, number>();
      for (const record of records) {
        if (record.outcome === 'unknown') continue;
        const name = nameOf(record.operation, record.by, record);
        recorded.set(name, 1 + (recorded.get(name) ?? 0));
      }
      const unrecorded = grants.filter(
        (grant) =>
          !records.some(
            ({ operation, by, until }) => operation === 'grant' && by === grant.by && until === grant.until,
          ),
      );
      return [
        ...[...known].flatMap(([name, { acknowledged, possible }]) => {
          const count = recorded.get(name) ?? 0;
          if (count >= acknowledged && count <= possible) return [];
          return `the audit log has ${count} times ${name}: ${acknowledged} were acknowledged, and ${possible} may have been executed`;
        }),
        ...unrecorded.map(({ by, until }) => `the audit log lacks the grant of ${by} until ${until}`),
      ];
    },
  };
}
