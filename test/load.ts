import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Values } from '../lib/index.ts';
import { customers, employees } from './fixtures/model.ts';
import type { Entity } from './kit/define.ts';
import type { Storage } from './kit/storage.ts';
import { expectIndexesToAgree, rowsOf } from './world.ts';

/** Writers over HTTP that also cause queue work, against a product that may be down at times. */
interface Load {
  /** The number of acknowledged requests. */
  readonly acknowledged: number;
  /** Stops writing. */
  stop(): Promise<void>;
  /** Waits until storage agrees with every acknowledged write, and returns the seconds since `since`. */
  agreed(storage: Storage, options: { since: number; withinSeconds: number }): Promise<number>;
}

const PAUSE_MS = 100;
const POLL_MS = 1_000;
let counter = 0;

export function startLoad(call: (method: string, path: string, body?: object) => Promise<number>, writers = 6): Load {
  let stopped = false;
  let acknowledged = 0;
  /** The expected location of each acknowledged employee, by id; undefined if the employee is deleted. */
  const wanted = new Map<string, { table: string; department: string } | undefined>();
  const unsure = new Set<string>();

  async function write(): Promise<void> {
    counter += 1;
    const employeeId = String(counter).padStart(6, '0');
    const department = `Load${counter % 5}`;
    const path = `employees/${department}/${employeeId}`;
    const one = {
      department,
      employeeId,
      email: `load${employeeId}@contoso.com`,
      firstName: 'Ann',
      lastName: `L${counter % 7}`,
    };
    const done = async (status: number, expected: number, where: { table: string; department: string } | undefined) => {
      if (status === expected) acknowledged += 1;
      if (status === expected) wanted.set(employeeId, where);
      else unsure.add(employeeId);
      return status === expected;
    };
    if (!(await done(await call('POST', 'employees', one), 201, { table: 'employees', department }))) return;
    const next = counter % 5;
    if (next === 0) await done(await call('POST', `${path}/archive`), 202, { table: 'formeremployees', department });
    if (next === 1)
      await done(await call('POST', `${path}/move`, { department: 'Moved' }), 202, {
        table: 'employees',
        department: 'Moved',
      });
    if (next === 2)
      await done(await call('PATCH', path, { email: `new${one.email}`, lastName: 'New' }), 200, {
        table: 'employees',
        department,
      });
    if (next === 3) await done(await call('DELETE', path), 204, undefined);
    // More index entries than a writer settles itself.
    if (next === 4) await call('POST', 'customers/batch', { actions: manyCustomers().map((put) => ({ put })) });
  }

  const running = Array.from({ length: writers }, async () => {
    while (!stopped) {
      await write();
      await sleep(PAUSE_MS);
    }
  });

  async function check(storage: Storage): Promise<void> {
    for (const entity of [employees, customers] as readonly Entity[]) await expectIndexesToAgree(storage, entity);
    const there = new Map<string, string[]>();
    for (const table of ['employees', 'formeremployees'])
      for (const row of await rowsOf(storage, table))
        if (row.EntityType === 'employees' || row.EntityType === 'formeremployees')
          if (row.SourceRow === undefined)
            there.set(String(row.employeeId), [
              ...(there.get(String(row.employeeId)) ?? []),
              `${table} ${row.partitionKey}`,
            ]);
    for (const [employeeId, where] of wanted)
      if (!unsure.has(employeeId))
        expect([employeeId, ...(there.get(employeeId) ?? [])]).toEqual([
          employeeId,
          ...(where ? [`${where.table} ${where.department}`] : []),
        ]);
  }

  return {
    get acknowledged() {
      return acknowledged;
    },
    async stop() {
      stopped = true;
      await Promise.all(running);
    },
    async agreed(storage, { since, withinSeconds }) {
      for (;;) {
        const at = Date.now();
        try {
          await check(storage);
          return (at - since) / 1_000;
        } catch (error) {
          if (Date.now() - since > withinSeconds * 1_000) throw error;
          await sleep(POLL_MS);
        }
      }
    },
  };
}

function manyCustomers(): Values[] {
  counter += 20;
  return Array.from({ length: 20 }, (_, index) => ({
    city: `City${counter % 3}`,
    customerId: `C${counter + index}`,
    companyName: 'Load',
    contactName: `Ann N${index}`,
  }));
}
