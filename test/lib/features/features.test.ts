import { readdir } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { features } from '../../../lib/features/features.ts';
import type { Declaration } from '../../../lib/index.ts';
import { importsOf } from '../../../local/shape/folder-circles.ts';
import { readSourceFiles } from '../../../local/shape/source-files.ts';
import { type Entity, modelParts } from '../../kit/define.ts';

const folder = new URL('../../../lib/features/', import.meta.url);

test('each folder of lib/features exports features, and the list has all of them', async () => {
  const files = (await readdir(folder, { recursive: true })).filter((file) => /.+\/.+\.ts$/.test(file));
  const exported = await Promise.all(
    files.map(async (file) => {
      const members: unknown[] = Object.values(await import(new URL(file, folder).href));
      return { room: file.split('/')[0], listed: features.filter((feature) => members.includes(feature)) };
    }),
  );
  expect(exported.flatMap(({ listed }) => listed)).toHaveLength(features.length);
  const rooms = Map.groupBy(exported, ({ room }) => room);
  const empty = [...rooms].filter(([, all]) => all.every(({ listed }) => listed.length === 0)).map(([room]) => room);
  expect(empty).toEqual([]);
});

test('no feature imports another one', () => {
  const roomOf = (path: string) => /^lib\/features\/([^/]+)\//.exec(path)?.[1];
  const found = readSourceFiles('lib/features/*/**/*.ts').flatMap((file) =>
    importsOf(file)
      .filter((path) => roomOf(path) !== undefined && roomOf(path) !== roomOf(file.path))
      .map((path) => `${file.path} imports ${path}`),
  );
  expect(found).toEqual([]);
});

/** What the engine itself does with an entity. */
type OfEngine =
  | 'schema'
  | 'table'
  | 'key'
  | 'version'
  | 'upgrades'
  | 'archive'
  | 'movable'
  | 'derived'
  | 'defaults'
  | 'checks'
  | 'ofUser'
  | 'access'
  | 'label'
  | 'maxAge'
  | 'sharedTable'
  | 'existing';

const OPTIONS = {
  indexes: { byName: { kind: 'intra-partition' } },
  totals: { perName: {} },
  encrypted: ['name'],
  attachments: { photo: {} },
  large: ['name'],
  compressed: ['name'],
  split: { rare: ['name'] },
  wide: true,
  period: { per: 'day' },
  expiry: { days: 1 },
  denormalized: { name: {} },
  references: { name: {} },
  childOf: {},
  counts: { name: {} },
  lookup: { index: 'byName' },
} satisfies Record<Exclude<keyof Declaration, OfEngine>, unknown>;

const unused = {
  ...modelParts.withDefaults({} as Declaration),
  series: undefined,
  dependents: [],
  referencedBy: [],
  countedBy: [],
  children: [],
};
const featuresUsedBy = (options: object) => {
  const entity: unknown = { ...unused, ...options };
  return features.filter((feature) => feature.isUsed(entity as Entity));
};

test('an entity without options uses no feature', () => expect(featuresUsedBy({})).toEqual([]));

test.each(Object.entries(OPTIONS))('the option %s makes an entity use a feature', (option, value) => {
  expect(featuresUsedBy({ [option]: value })).not.toEqual([]);
});

test('every feature is used by an option, or by a series', () => {
  const indexes = { one: { kind: 'inter-partition' }, other: { kind: 'index-entity' } };
  const denormalized = { name: { fanOut: true } };
  const all = [OPTIONS, { indexes, denormalized, series: { overflow: 'blob' } }].flatMap(featuresUsedBy);
  expect(features.filter((feature) => !all.includes(feature))).toEqual([]);
});
