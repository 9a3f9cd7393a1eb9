import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex } from '../../../lib/define.ts';
import { makeExampleRequests } from '../../../local/packs/example-requests.ts';

const access = { read: ['editor'], write: ['editor'] } as const;
const ownerId = z.string().min(1);

const owners = defineEntity('owners', {
  schema: z.object({ ownerId }),
  table: 'owners',
  key: { partition: '{ownerId}', row: 'owner' },
  access,
});
/** Has more routes than `owners`. */
const animals = defineEntity('animals', {
  schema: z.object({ ownerId, animalId: z.string().min(1), chip: z.string() }),
  table: 'animals',
  key: { partition: '{ownerId}', row: '{animalId}' },
  indexes: { chip: interPartitionIndex({ table: 'animalsbychip', partition: '{chip#}', row: '{chip}', unique: true }) },
  references: { ownerId: { to: owners, onDelete: 'refuse' } },
  access,
});
const visits = defineEntity('visits', {
  schema: z.object({ clinic: z.string().min(1), at: z.iso.datetime() }),
  table: 'visits',
  key: { partition: '{clinic}', row: '{at}' },
  period: { per: 'day', field: 'at', keep: 1 },
  access,
});

function firstPath(entities: Parameters<typeof defineModel>[0]['entities']) {
  const model = defineModel({ roles: ['editor'], operatorRole: 'editor', entities });
  return makeExampleRequests(model, [])?.requests[0]?.path;
}

test('tries an entity that refers to no other and that no period rejects', () => {
  expect(firstPath([animals, visits, owners])).toBe('/api/owners');
});

test('tries another entity if there is no such entity', () => {
  expect(firstPath([visits])).toBe('/api/visits');
});
