import { createTestStore } from 'rowkey/testing';
import { expect, test } from 'vitest';
import { model } from './model.ts';
import { operations } from './operations.ts';

const user = (subject: string) => ({ subject, roles: ['user'], claims: {} });

/** The stores of two users and of a visitor, on a storage account in memory. */
async function open() {
  const { store } = await createTestStore(model, { operations });
  return {
    ann: store.as(user('ann')),
    bob: store.as(user('bob')),
    visitor: store.as({ subject: '', roles: ['visitor'], claims: {} }),
  };
}

test('a user sees the own projects and entries, and another user none of them', async () => {
  const { ann, bob } = await open();
  const { values: project } = await ann.projects.create({ name: 'Website' });
  const { values: entry } = await ann.entries.create({ projectId: project.projectId, day: '2026-11-20', hours: 2 });
  expect(await Array.fromAsync(ann.projects.mine())).toEqual([project]);
  expect(await Array.fromAsync(ann.entries.mine())).toEqual([entry]);
  expect(await Array.fromAsync(bob.projects.mine())).toEqual([]);
  expect(await Array.fromAsync(bob.entries.range({ ownerId: 'ann' }))).toEqual([]);
  const { ownerId, projectId } = project;
  expect(await bob.projects.get({ ownerId, projectId })).toBeUndefined();
  await expect(bob.projects.delete({ ownerId, projectId })).rejects.toMatchObject({ code: 'not-found' });
});

test('a user cannot write in the name of another', async () => {
  const { ann, bob } = await open();
  await expect(bob.projects.create({ ownerId: 'ann', name: 'Website' })).rejects.toMatchObject({ code: 'forbidden' });
  const { values } = await ann.projects.create({ name: 'Website' });
  const entry = { projectId: values.projectId, day: '2026-11-20', hours: 2 };
  await expect(bob.entries.create({ ...entry, ownerId: 'ann' })).rejects.toMatchObject({ code: 'forbidden' });
  // To bob, the project of ann does not exist.
  await expect(bob.entries.create(entry)).rejects.toMatchObject({ code: 'invalid-input' });
});

test('no user has two projects of the same name', async () => {
  const { ann, bob } = await open();
  await ann.projects.create({ name: 'Website' });
  await expect(ann.projects.create({ name: 'Website' })).rejects.toMatchObject({ code: 'duplicate-value' });
  await bob.projects.create({ name: 'Website' });
});

test('a project with entries cannot be deleted', async () => {
  const { ann } = await open();
  const { values: project } = await ann.projects.create({ name: 'Website' });
  const { values: entry } = await ann.entries.create({ projectId: project.projectId, day: '2026-11-20', hours: 2 });
  await expect(ann.projects.delete(project)).rejects.toMatchObject({ code: 'referenced' });
  await ann.entries.delete(entry);
  await ann.projects.delete(project);
  expect(await Array.fromAsync(ann.projects.mine())).toEqual([]);
});

test('whoever knows the code of a project sees its hours, the newest first', async () => {
  const { ann, visitor } = await open();
  const { values: project } = await ann.projects.create({ name: 'Website' });
  const { values: other } = await ann.projects.create({ name: 'App' });
  const { projectId, code } = project;
  for (const entry of [
    { projectId, day: '2026-11-19', hours: 0.1 },
    { projectId, day: '2026-11-20', hours: 0.2, note: 'Design' },
    { projectId: other.projectId, day: '2026-11-20', hours: 8 },
  ])
    await ann.entries.create(entry);
  expect(await visitor.operations.report({ code })).toMatchObject({
    name: 'Website',
    hours: 0.3,
    entries: [
      { day: '2026-11-20', hours: 0.2, note: 'Design' },
      { day: '2026-11-19', hours: 0.1 },
    ],
  });
  await expect(visitor.operations.report({ code: crypto.randomUUID() })).rejects.toMatchObject({ code: 'not-found' });
  expect(await visitor.operations.report({ code: other.code })).toMatchObject({ name: 'App', hours: 8 });
});
