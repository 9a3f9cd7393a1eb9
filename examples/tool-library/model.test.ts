import { expect, test } from 'vitest';
import { createTestStore } from '../../lib/testing/index.ts';
import { model } from './model.ts';
import { operations } from './operations.ts';

const user = (subject: string) => ({ subject, roles: ['user'], claims: {} });

test('members see the tools, one of them borrows, and strangers see nothing', async () => {
  const { store } = await createTestStore(model, { operations });
  const [ann, bob, eve] = [store.as(user('ann')), store.as(user('bob')), store.as(user('eve'))];
  const { libraryId } = await ann.operations.createLibrary({ name: 'Our street' });
  const library = await ann.libraries.get({ libraryId });
  await bob.operations.join({ code: library?.values.code ?? '' });
  const { values: drill } = await ann.tools.create({ libraryId, name: 'Drill' });

  const loan = { libraryId, toolId: drill.toolId };
  await bob.loans.create(loan);
  await expect(ann.loans.create(loan)).rejects.toMatchObject({ code: 'duplicate-key' });
  await expect(ann.loans.delete(loan)).rejects.toMatchObject({ code: 'forbidden' });
  await expect(ann.tools.delete(drill)).rejects.toMatchObject({ code: 'referenced' });
  await bob.loans.delete(loan);

  expect(await eve.tools.get(loan)).toBeUndefined();
  await expect(eve.loans.create(loan)).rejects.toMatchObject({ code: 'forbidden' });
});
