import type { Entity } from '../../define/declaration/entity.ts';
import type { Route } from '../route.ts';
import { deleteRangeRoutes } from './delete-range-route.ts';
import { entityReadRoutes } from './entity-read-routes.ts';
import { deleteRoute, entityWriteRoutes } from './entity-write-routes.ts';
import { lookupRoutes } from './lookup-route.ts';

/** The routes that follow from the key of an entity. */
export function entityRoutes(entity: Entity): Route[] {
  return [
    ...entityReadRoutes(entity),
    ...lookupRoutes(entity),
    deleteRoute(entity),
    ...deleteRangeRoutes(entity),
    ...entityWriteRoutes(entity),
  ];
}

/** An archive is written only by archiving, so it has no routes that create or change. */
export function archiveRoutes(archive: Entity): Route[] {
  return [...entityReadRoutes(archive), deleteRoute(archive)];
}
