import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { openForWriter, openPage, openValues } from '../../../lib/api/open.ts';
import { defineEntity, type Values } from '../../../lib/index.ts';
import { deploy } from '../../fixtures/deploy.ts';
import { defineCodec } from '../../kit/define.ts';
import { engineRead, engineWrite } from '../../kit/engine.ts';
import { httpDoor } from '../../kit/http.ts';
import { openWorld, type World } from '../../world.ts';

/** A writer must be able to read a restricted field, by another role if need be. */
const RESTRICTED = { owner: ['hr', 'operator'], code: ['hr', 'reader', 'operator'] } as const;
const { vaults } = deploy(
  defineEntity('vaults', {
    schema: z.object({
      site: z.string(),
      vaultId: z.string(),
      owner: z.string().optional(),
      code: z.string().optional(),
      note: z.string().optional(),
    }),
    table: 'vaults',
    key: { partition: '{site}', row: '{vaultId}' },
    encrypted: ['code'],
    large: ['note'],
    access: { read: ['reader', 'hr'], write: ['hr', 'operator'], restricted: RESTRICTED },
  }),
);

let world: World;
let stored: Values;
const vault = { site: 'Bern', vaultId: '1', owner: 'Ann', code: '4711', note: 'x'.repeat(1_000_000) };
beforeAll(async () => {
  world = await openWorld(import.meta.url, [vaults]);
  await engineWrite.createEntity(world.engine, vaults, vault);
  stored = (await engineRead.readEntity(world.engine, vaults, vault)).values;
});

const as = (role: string, isLastAttempt = true) => ({
  engine: world.engine,
  caller: { subject: 'ann', roles: [role], claims: {} },
  isLastAttempt,
});
const written = async (role: string, values: Values, isLastAttempt = true) =>
  (await openForWriter(as(role, isLastAttempt), vaults, { etag: '', values })).values;
const listed = async (role: string, ...items: readonly Values[]) =>
  (await openPage(as(role), vaults, { items, next: undefined })).items;
const withoutOwner = { site: vault.site, vaultId: vault.vaultId, code: vault.code, note: vault.note };

describe('an entity', () => {
  test('is presented with its encrypted and large fields, which are stored as references', async () => {
    expect(typeof stored.code).toBe('object');
    expect(await openValues(as('hr'), vaults, stored)).toEqual(vault);
  });

  test('is presented without the restricted fields that no role of the caller may read', async () => {
    expect(await openValues(as('reader'), vaults, stored)).toEqual(withoutOwner);
    expect(await listed('reader', stored, stored)).toEqual([withoutOwner, withoutOwner]);
  });

  test('is presented by its key alone to a writer who may not read it', async () => {
    expect(await written('operator', stored)).toEqual({ site: 'Bern', vaultId: '1' });
    expect(await written('hr', stored)).toEqual(vault);
  });
});

describe('a field that cannot be read', () => {
  // Encrypted for another key of the entity.
  const broken = () => ({ ...stored, vaultId: '2' });

  test('fails a read of the entity, naming the field and no value', async () => {
    await expect(openValues(as('hr'), vaults, broken())).rejects.toMatchObject({
      code: 'needs-repair',
      message: expect.stringMatching(
        /^"code" of an entity of vaults cannot be read \(table \w+, row #[0-9a-f]{10}\)\.$/,
      ),
      field: 'code',
    });
  });

  test('is null in a list and in the response to a write', async () => {
    const gap = { ...vault, vaultId: '2', code: null };
    expect(await listed('hr', stored, broken())).toEqual([vault, gap]);
    expect(await written('hr', broken())).toEqual(gap);
  });

  test('asks for another read when only its blob is missing, until the last attempt', async () => {
    const lost = { ...stored, note: { ...Object(stored.note), blob: 'vaults/none' } };
    await expect(written('hr', lost, false)).rejects.toBeInstanceOf(engineRead.BlobGone);
    expect(await written('hr', lost)).toEqual({ ...vault, note: null });
    await expect(openValues(as('hr'), vaults, lost)).rejects.toMatchObject({ field: 'note' });
  });
});

describe('select', () => {
  const select = (text: string) =>
    defineCodec.toSelection(vaults, httpDoor.readSelect(new URLSearchParams(text)))[vaults.name];

  test.each([
    ['', undefined],
    ['select=', undefined],
    ['select=owner', ['owner']],
    ['select=owner,%20note', ['owner', 'note']],
  ])('in %j names %j', (text, fields) => {
    expect(select(text)).toEqual(fields);
  });

  test.each(['none', 'owner,', 'Owner', '__proto__', 'constructor', 'owner;note', 'PartitionKey'])(
    'is rejected when it names a field that does not exist: %j',
    (fields) => {
      expect(() => select(`select=${fields}`)).toThrow(
        expect.objectContaining({ code: 'invalid-input', field: 'select' }),
      );
    },
  );
});
