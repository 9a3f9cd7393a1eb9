import { randomUUID } from 'node:crypto';
import { glob, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, type Model, RowkeyError, type Values } from '../../../lib/index.ts';
import { listKinds } from '../../../local/cli/everything/kinds.ts';
import { createImportCommand } from '../../../local/cli/import-command.ts';
import { creationOf } from '../../../local/walk/values.ts';
import { model as deployed } from '../../../model/model.ts';
import { type BackedUp, comparableRows, openBackedUp } from '../../backed-up.ts';
import { model as fixtures } from '../../fixtures/model.ts';
import { model as relations } from '../../fixtures/relations.ts';
import { baseValues } from '../../kit/base.ts';
import type { Entity } from '../../kit/define.ts';
import { engineRead, engineWrite } from '../../kit/engine.ts';
import { httpDoor } from '../../kit/http.ts';
import { operationsCheck } from '../../kit/operations.ts';

/** The packs of the app, and the examples that are an app each. */
const examples = (await Array.fromAsync(glob('examples/*/model.ts'))).toSorted();
const models = [
  { name: 'the packs', model: deployed as Model },
  ...(await Promise.all(
    examples.map(async (file) => ({
      name: file,
      model: (await import(pathToFileURL(resolve(file)).href)).model as Model,
    })),
  )),
  { name: 'the fixtures', model: fixtures as Model },
];

const ROWS = 30;
const isLoadable = ({ series, period, isArchive, existing }: Entity) => !series && !period && !isArchive && !existing;

/** Runs the command on the rows of a file. The API is the engine of the app, with the routes left out. */
async function importRows(app: BackedUp, model: Model, entity: Entity, rows: readonly unknown[], ...more: string[]) {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-bulk-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'rows.ndjson');
  await writeFile(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const said: string[] = [];
  const say = (line: unknown) => void said.push(String(line));
  const spies = [vi.spyOn(console, 'log').mockImplementation(say), vi.spyOn(console, 'error').mockImplementation(say)];
  const fetched = vi.spyOn(globalThis, 'fetch').mockImplementation(async (_, init) => {
    const { actions } = JSON.parse(String(init?.body));
    const outcomes = await engineWrite.writeBatch(app.engine, entity, actions);
    return Response.json({
      results: outcomes.map((outcome) =>
        outcome instanceof RowkeyError
          ? { status: 400, problem: httpDoor.toProblem(outcome) }
          : { status: outcome.outcome === 'created' ? 201 : 200 },
      ),
    });
  });
  try {
    const api = more.includes('--bulk') ? [] : ['--url', 'https://api.example', '--token', 'token'];
    await createImportCommand({ model, folder, packs: undefined }, async () => app.engine)
      .exitOverride()
      .configureOutput({ writeErr: () => {} })
      .parseAsync([entity.name, file, '--data', folder, ...api, ...more], { from: 'user' });
    if (more.includes('--bulk')) expect(fetched).not.toHaveBeenCalled();
  } finally {
    for (const spy of [...spies, fetched]) spy.mockRestore();
    process.exitCode = undefined;
  }
  return said.map((line) => line.replace(/ in [\d.]+ s\.$/, '').replace(folder, '')).sort();
}

/** What an app has of an entity, as a file of an export has it. */
async function valuesOf({ engine }: BackedUp, entity: Entity): Promise<Values[]> {
  const { items } = await engineRead.scanEntities(engine, entity, { top: 1_000 });
  const plain = await Promise.all(items.map((values) => engineWrite.toPlain(engine, entity, values)));
  return plain.map((values) => baseValues.omit(values, entity.decidedFields));
}

async function findingsIn({ engine }: BackedUp, entities: readonly Entity[]) {
  const pages = entities
    .filter(operationsCheck.canVerify)
    .map((entity) => operationsCheck.verifyPage(engine, entity, { top: 1_000, repair: false, patience: 0 }));
  return (await Promise.all(pages)).flatMap(({ findings }) => findings);
}

test.each(models)(
  'a load in bulk stores what an ordinary import stores, and rejects the same rows: $name',
  { tags: ['slow'] },
  async ({ model }) => {
    const kinds = listKinds(model).filter(({ entity, isArchived }) => !isArchived && !entity.series);
    const [source, ordinary, bulk] = [await openBackedUp(model), await openBackedUp(model), await openBackedUp(model)];
    let loaded = 0;
    for (const { entity } of kinds) {
      for (const values of fc.sample(creationOf(entity), { numRuns: ROWS, seed: Number(inject('seed')) }))
        await engineWrite.createEntity(source.engine, entity, values).catch((error: unknown) => {
          if (!(error instanceof RowkeyError)) throw error;
        });
      await source.settle();
      const rows = await valuesOf(source, entity);
      const [first = {}] = rows;
      const keyless = baseValues.omit(first, entity.keyFields);
      const isGenerated = entity.keyFields.some((field) => entity.schema.shape[field]?.safeParse(undefined).success);
      const file = [...rows, ...(rows.length > 0 ? [...(isGenerated ? [] : [keyless]), first] : [])];
      const said = await importRows(ordinary, model, entity, file);
      await ordinary.settle();
      if (!isLoadable(entity)) {
        await expect(importRows(bulk, model, entity, file, '--bulk')).rejects.toThrow(
          'Create its entities one by one.',
        );
        await importRows(bulk, model, entity, file);
      } else {
        loaded += rows.length;
        const byBulk = await importRows(bulk, model, entity, file, '--bulk');
        expect({ entity: entity.name, said: withSums(byBulk) }).toEqual({ entity: entity.name, said: withSums(said) });
      }
      await bulk.settle();
    }
    expect(loaded).toBeGreaterThan(0);
    expect(await comparableRows(bulk, model)).toEqual(await comparableRows(ordinary, model));
    expect(
      await findingsIn(
        bulk,
        kinds.map(({ entity }) => entity),
      ),
    ).toEqual([]);
  },
);

/** An ordinary import of an entity of one row does not know what it has created. */
const withSums = (said: readonly string[]) =>
  said.map((line) =>
    line.replace(/(\d+) created, (\d+) stored/, (_, one, other) => `${Number(one) + Number(other)} written`),
  );

const { members } = relations.entities as never as Record<'members', Entity>;

test('names rejected rows as an ordinary import does', async () => {
  const [team, other] = ['0', '1'];
  const rows = [
    { team, memberId: '1', email: 'a@b.de' },
    { team, memberId: '2', email: 'a@b.de' },
    { team, memberId: '3', level: 'high', email: 1 },
    { team, memberId: '4', mentor: '9' },
    { team, memberId: '5', unknown: true },
    { team: other, memberId: '' },
    { team: other, memberId: '6', mentor: '1' },
  ];
  const [ordinary, bulk] = [await openBackedUp(relations as Model), await openBackedUp(relations as Model)];
  const said = await importRows(ordinary, relations as Model, members, rows);
  expect(said).toHaveLength(7);
  expect(await importRows(bulk, relations as Model, members, rows, '--bulk')).toEqual(said);
});

test('rejects an entity that has rows, rows without their key, and options of the API', async () => {
  const app = await openBackedUp(relations as Model);
  const rows = [{ team: '0', memberId: '1' }];
  expect(await importRows(app, relations as Model, members, rows, '--bulk')).toEqual([
    '1 read: 1 created, 0 stored, 0 unchanged, 0 rejected,',
  ]);
  await expect(importRows(app, relations as Model, members, rows, '--bulk')).rejects.toThrow('has rows of members');
  const notes = defineEntity('notes', {
    schema: z.object({ id: z.uuid().default(() => randomUUID()), text: z.string() }),
    table: 'notes',
    key: { partition: '{id}', row: 'note' },
    access: { read: ['reader'], write: ['reader'] },
  });
  const model = defineModel({ roles: ['reader'], operatorRole: 'reader', entities: [notes] });
  const keyless = await importRows(await openBackedUp(model), model, notes as never, [{ text: 'a' }], '--bulk');
  expect(keyless).toContain('Line 1: the row has no "id", which --bulk needs');
  await expect(importRows(app, relations as Model, members, rows, '--bulk', '--files', '.')).rejects.toThrow('--bulk');
});
