import { randomUUID } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel } from '../../../../lib/define.ts';
import { type Ask, openAccessApp } from '../../../access-app.ts';

/** A repeated request must use the key of its first attempt, so a generated part of a key is recorded. A constant needs no record. */

const first = (value: string | string[]): string => (Array.isArray(value) ? (value[0] ?? '') : value);
const access = { read: ['member'], write: ['member'] } as const;
const key = { partition: '{country}', row: '{region}_{number:4}' } as const;
const row = { country: z.string(), number: z.int32() };
const entities = Object.entries({
  given: z.string(),
  constant: z.string().default('none'),
  checked: z
    .enum(['none', 'some'])
    .default('none')
    .refine((text) => text !== 'some'),
  prefault: z.string().prefault('none'),
  made: z.string().default(() => randomUUID()),
  // Tests its result as zod tests a constant.
  tested: z.string().default(() => first(randomUUID())),
}).map(([name, region]) => defineEntity(name, { schema: z.object({ ...row, region }), table: name, key, access }));
const model = defineModel({ roles: ['member', 'operator'], operatorRole: 'operator', entities });

let ask: Ask;
beforeAll(async () => {
  ({ ask } = await openAccessApp(import.meta.url, model));
});

/** The storage transactions of 100 puts in a batch that may be repeated, as those of an import are. */
async function putAll(name: string, values: object): Promise<number> {
  const actions = Array.from({ length: 100 }, (_, number) => ({ put: { country: 'FR', number, ...values } }));
  const reply = await ask(
    { roles: ['member'] },
    'POST',
    `${name}/batch`,
    { actions },
    { 'idempotency-key': randomUUID() },
  );
  expect(reply.status, reply.text).toBe(200);
  return Number(/desc="(\d+) transaction/.exec(reply.headers.get('server-timing') ?? '')?.[1]);
}

test('a constant default in a key costs no transaction', async () => {
  const expected = await putAll('given', { region: 'none' });
  for (const name of ['constant', 'checked', 'prefault']) expect(await putAll(name, {}), name).toBe(expected);
  expect(expected).toBeLessThanOrEqual(2);
});

test('a generated default in a key is recorded', { tags: ['slow'] }, async () => {
  for (const name of ['made', 'tested']) expect(await putAll(name, {}), name).toBeGreaterThan(200);
});
