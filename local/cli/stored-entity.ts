import { resolve } from 'node:path';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import type { LinkedModel, Model } from '../../lib/define/define-model.ts';
import { readInstance } from '../instance/instance.ts';
import { loadModel } from '../instance/load-local-app.ts';
import type { LocalApp } from '../instance/local-app.ts';
import type { TargetOptions } from './target.ts';

/** Returns the model of the app that a command calls. `own` is the app of a remote API; default: that in the current folder. */
export async function findModel({ url, data, path = '' }: TargetOptions, own: LocalApp | undefined): Promise<Model> {
  const served = url === undefined ? (await readInstance(data))?.app : undefined;
  return modelOf(served ?? own?.folder ?? '.', own, path);
}

/** Returns the model of the app in a folder, which may be the own one. */
export async function modelOf(folder: string, own: LocalApp | undefined, path = ''): Promise<Model> {
  return own && resolve(folder) === resolve(own.folder) ? own.model : loadModel(resolve(folder), path);
}

/** Data series are excluded: they have no rows to import or export. */
export function toStoredEntity({ list }: Pick<LinkedModel, 'list'>, name: string): Entity {
  const known = list.filter(({ series }) => !series);
  const entity = known.find((candidate) => candidate.name === name);
  if (entity) return entity;
  if (list.some((series) => series.name === name))
    throw new Error(`"${name}" is a data series: its counts cannot be imported or exported by itself, but with --all.`);
  const archived = known.find(({ archive }) => archive?.name === name);
  if (archived)
    throw new Error(
      `"${name}" is the archive of ${archived.name}: it cannot be imported or exported by itself, but with --all.`,
    );
  throw new Error(`Entity "${name}" not found; accepted are ${known.map((one) => one.name).join(', ')}.`);
}
