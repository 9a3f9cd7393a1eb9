import type { Entity } from '../define/declaration/entity.ts';
import type { Engine } from '../engine/engine.ts';
import { readShapes } from './model-guard.ts';

/** What is left to do after changes of the model. */
interface EntityState {
  readonly entity: string;
  /** False if the model no longer has the entity, whose rows still exist. */
  readonly isDeclared: boolean;
  readonly version: number;
  /** Indexes and copies that are not yet built from the existing entities. */
  readonly unbuilt: readonly string[];
  /** Former indexes whose rows still exist. */
  readonly leftOver: readonly string[];
}

/** Compares the declared entities with what the model guard stored. One range query. */
export async function readModelState(engine: Engine, entities: readonly Entity[]): Promise<EntityState[]> {
  const shapes = await readShapes(engine);
  return [...shapes].map(([entity, { shape }]) => ({
    entity,
    isDeclared: entities.some(({ name }) => name === entity),
    version: shape.version,
    unbuilt: shape.unbuilt,
    leftOver: Object.keys(shape.leftOver),
  }));
}
