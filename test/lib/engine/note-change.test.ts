import { createDefaultHttpClient, type HttpClient, RestError } from '@azure/core-rest-pipeline';
import { describe, expect, test } from 'vitest';
import { type ChangeRecord, collectChanges, keepEarly, noteChange } from '../../../lib/engine/note-change.ts';
import { tryFaults } from '../../fault-driver.ts';
import { employees } from '../../fixtures/model.ts';
import { type Engine, engineCore, engineRead, engineWrite } from '../../kit/engine.ts';
import { openWorld, somebody } from '../../world.ts';

const shared = createDefaultHttpClient();
const address = { table: 't', partition: 'p', row: 'r' };
const change = { operation: 'create', entity: 'e', address } as const;

const world = await openWorld(import.meta.url);

async function collected(work: () => Promise<unknown>): Promise<{ changes: ChangeRecord[]; failure: unknown }> {
  const changes: ChangeRecord[] = [];
  const keep = async (noted: readonly ChangeRecord[]) => void changes.push(...noted);
  const failure = await collectChanges('ann', work, keep).then(
    () => undefined,
    (error: unknown) => error,
  );
  return { changes, failure };
}

describe('collectChanges', () => {
  const engineOf = (): Engine => engineCore.createEngine(world.storage, { now: () => 0 });

  test('returns the changes of its own work only, also if the work fails', async () => {
    noteChange(engineOf(), change);
    const [one, other, none] = await Promise.all([
      collected(async () => {
        noteChange(engineOf(), change);
        throw new Error('half way');
      }),
      collected(async () => noteChange(engineOf(), { ...change, entity: 'f' })),
      collected(async () => undefined),
    ]);
    expect(one).toMatchObject({ changes: [{ entity: 'e', by: 'ann', at: '1970-01-01T00:00:00.000Z' }] });
    expect(one?.failure).toMatchObject({ message: 'half way' });
    expect(other?.changes).toMatchObject([{ entity: 'f' }]);
    expect(none?.changes).toEqual([]);
  });

  test('fails if the changes cannot be stored', async () => {
    const work = async () => noteChange(engineOf(), change);
    const keep = () => Promise.reject(new Error('not kept'));
    await expect(collectChanges('ann', work, keep)).rejects.toThrow('not kept');
  });

  test('keeps a change before the work ends, once, and fails if it cannot be stored', async () => {
    const kept: string[][] = [];
    const keep = async (changes: readonly ChangeRecord[]) => {
      kept.push(changes.map(({ entity }) => entity));
      if (kept.length === 1) throw new Error('not kept');
    };
    const work = async () => {
      for (const entity of ['first', 'second', 'third']) {
        noteChange(engineOf(), { ...change, entity });
        keepEarly();
        expect(kept).toEqual([['first']]);
      }
    };
    await expect(collectChanges('ann', work, keep)).rejects.toThrow('not kept');
    expect(kept).toEqual([['first'], ['second', 'third']]);
  });

  test('keeps a commit while its index entries are written', async () => {
    const order: string[] = [];
    const listening: HttpClient = {
      async sendRequest(request) {
        const response = await shared.sendRequest(request);
        order.push(`${request.method} ${new URL(request.url).pathname.split('/')[2]}`);
        return response;
      },
    };
    const keep = async () => void order.push('keep');
    await collectChanges(
      'ann',
      () => engineWrite.createEntity(world.engineThrough(listening), employees, somebody()),
      keep,
    );
    const at = order.indexOf('keep');
    expect(order.slice(0, at)).toContain('POST $batch');
    expect(order.slice(at)).toEqual(expect.arrayContaining([expect.stringMatching(/^DELETE /)]));
    expect(order.slice(at)).not.toContain('POST $batch');
  });
});

test('notes a write once, whichever reply is lost', async () => {
  await tryFaults(
    async ({ label, client }) => {
      const one = somebody({ department: label });
      const { changes, failure } = await collected(() =>
        engineWrite.createEntity(world.engineThrough(client), employees, one),
      );
      expect(failure, label).toBeUndefined();
      expect(changes, label).toMatchObject([{ operation: 'create' }]);
      expect(changes[0]?.outcome, label).toBeUndefined();
    },
    { faults: ['reply lost'] },
  );
});

test('notes a write with an unknown outcome as unknown', { tags: ['slow'] }, async () => {
  const one = somebody();
  await engineWrite.createEntity(world.engine, employees, one);
  let isLost = false;
  // The connection breaks during the transaction.
  const httpClient: HttpClient = {
    async sendRequest(request) {
      if (!isLost) {
        isLost = request.url.includes('$batch');
        const response = await shared.sendRequest(request);
        if (!isLost) return response;
      }
      throw new RestError('reply lost', { code: 'ECONNRESET', request });
    },
  };
  const engine = world.engineThrough(httpClient);
  const { changes, failure } = await collected(() => engineWrite.patchEntity(engine, employees, one, { phone: '1' }));
  expect(failure).toMatchObject({ code: 'storage-unavailable' });
  expect(changes).toMatchObject([{ operation: 'replace', fields: ['phone'], outcome: 'unknown' }]);
  expect((await engineRead.readEntity(world.engine, employees, one)).values.phone).toBe('1');
});
