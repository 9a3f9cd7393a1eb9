import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, intraPartitionIndex, type Values } from '../../../lib/index.ts';
import { deploy } from '../../fixtures/deploy.ts';
import { definePlaces, type Entity, type Finding } from '../../kit/define.ts';
import { engineRead, engineTransfer, engineWrite } from '../../kit/engine.ts';
import { operationsCheck } from '../../kit/operations.ts';
import { storageRows } from '../../kit/storage.ts';
import { openWorld } from '../../world.ts';

const { songs } = deploy(
  defineEntity('songs', {
    schema: z.object({
      album: z.string(),
      songId: z.string(),
      title: z.string(),
      text: z.string().optional(),
      initial: z.string().optional(),
      words: z.int32().optional(),
      tags: z.array(z.string()).optional(),
      length: z.number().optional(),
    }),
    table: 'songs',
    key: { partition: '{album}', row: 's_{songId}' },
    large: ['text'],
    derived: {
      initial: ({ title }) => {
        if (title === 'no text') throw new TypeError('title');
        return String(title).slice(0, 1) || undefined;
      },
      words: ({ text }) => (typeof text === 'string' ? text.split(' ').length : undefined),
      tags: ({ title }) => String(title).split(' '),
      length: ({ title }) => String(title).length / 3,
    },
    indexes: { initial: intraPartitionIndex({ row: 'i_{initial}_{songId}', copies: 'keys' }) },
    archive: { table: 'oldsongs' },
    movable: ['album'],
    access: { read: [], write: [] },
  }),
);
const { engine, settle } = await openWorld(import.meta.url, [songs]);
const key = (songId: string) => ({ album: 'a', songId });

async function check(repair = false): Promise<readonly Finding[]> {
  const found: Finding[] = [];
  let position: Parameters<typeof operationsCheck.verifyPage>[2]['position'];
  do {
    const { findings, next } = await operationsCheck.verifyPage(engine, songs, {
      position,
      top: 100,
      repair,
      patience: 1,
    });
    found.push(...findings);
    position = next;
  } while (position);
  return found;
}

async function change(entity: Entity, songId: string, properties: Values): Promise<void> {
  const { table, partition, row } = definePlaces.addressOf(entity, key(songId));
  await storageRows.submit(engine.storage, {
    table,
    partition,
    actions: [{ kind: 'merge', row, properties, etag: '*' }],
  });
}

const LONG = 'word '.repeat(200_000).trim();

test('a derived field that is not what its function returns is a finding, and is not repaired', async () => {
  for (const [songId, title, text] of [
    ['1', 'Alpha beta', undefined],
    ['2', 'Beta', 'in the row'],
    ['3', 'Gamma', LONG],
    ['4', '', undefined],
    ['5', 'Delta', undefined],
  ] as const)
    await engineWrite.createEntity(engine, songs, { ...key(songId), title, ...(text === undefined ? {} : { text }) });
  await settle();
  expect(await check()).toEqual([]);
  await change(songs, '2', { title: 'Omega' });
  await change(songs, '3', { words: 7 });
  await change(songs, '5', { title: 'no text' });
  const found = (await check(true)).map(({ kind, of, row, repaired }) => `${kind} ${of} ${row} ${repaired}`);
  expect(found).toEqual([
    'not-derived initial s_2 false',
    'not-derived tags s_2 false',
    'not-derived length s_2 false',
    'not-derived words s_3 false',
    'not-derived initial s_5 false',
    'not-derived tags s_5 false',
    'not-derived length s_5 false',
  ]);
  // A write of the entity stores what the functions return.
  await engineWrite.patchEntity(engine, songs, key('2'), { title: 'Beta' });
  await engineWrite.patchEntity(engine, songs, key('3'), { title: 'Gamma delta' });
  expect((await check()).filter(({ row }) => row !== 's_5')).toEqual([]);
});

test('an archive keeps what was derived', async () => {
  await engineWrite.createEntity(engine, songs, { ...key('9'), title: 'Old' });
  await change(songs, '9', { words: 7 });
  await engineTransfer.requestArchive(engine, songs, key('9'));
  await settle();
  expect((await check()).filter(({ row }) => row.includes('9'))).toEqual([]);
});

test('a patch and a move compute a derived field of a text in a blob', async () => {
  await engineWrite.createEntity(engine, songs, { ...key('7'), title: 'Long', text: LONG });
  await engineWrite.patchEntity(engine, songs, key('7'), { title: 'Longer' });
  await engineTransfer.requestMove(engine, songs, key('7'), { album: 'b' });
  await settle();
  const { values } = await engineRead.readEntity(engine, songs, { album: 'b', songId: '7' });
  expect(values).toMatchObject({ words: 200_000, initial: 'L' });
});

test('an entity with derived fields alone is checked regularly, and one without anything to compare is not', () => {
  const declared = {
    schema: z.object({ id: z.string(), text: z.string().optional() }),
    access: { read: [], write: [] },
  };
  const key = { partition: '{id}', row: 'one' };
  const { texts, plain } = deploy(
    defineEntity('texts', { ...declared, table: 'texts', key, derived: { text: ({ id }) => String(id) } }),
    defineEntity('plain', { ...declared, table: 'plain', key }),
  );
  expect([operationsCheck.canVerify(texts), operationsCheck.canVerify(plain)]).toEqual([true, false]);
});
