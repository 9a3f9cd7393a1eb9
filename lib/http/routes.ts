import { z } from 'zod';
import { type Entity, withArchives } from '../define/entity.ts';
import { canVerify } from '../operations/verify.ts';
import { attachmentRoutes } from './attachment-routes.ts';
import { auditRoute } from './audit-route.ts';
import { archiveRoutes, entityRoutes } from './entity-routes.ts';
import { grantRoute } from './grant-route.ts';
import { healthRoute } from './health-route.ts';
import { indexRoutes } from './index-routes.ts';
import { openapiOf } from './openapi.ts';
import { poisonRoutes } from './poison-routes.ts';
import { problemsRoute } from './problems-route.ts';
import { revocationRoutes } from './revocation-routes.ts';
import { rewrapRoute } from './rewrap-route.ts';
import type { Route } from './route.ts';
import { routeErrors } from './route-conflicts.ts';
import { scanRoute } from './scan-route.ts';
import { seriesRoutes } from './series-routes.ts';
import { transferRoutes } from './transfer-routes.ts';
import { verifyRoutes } from './verify-routes.ts';

/**
 * Every route of a deployment, from what it stores. Throws a plain error with a sentence for every request that two routes
 * could match, so that a name or a value never sends a request to the wrong one.
 */
export function routesOf(entities: readonly Entity[]): Route[] {
  const single = entities.filter(({ series }) => !series);
  const ofEntities = [
    ...entities.filter(({ series }) => series).flatMap(about(seriesRoutes)),
    ...single.flatMap(
      about((entity) => [
        ...entityRoutes(entity),
        ...indexRoutes(entity),
        ...transferRoutes(entity),
        ...attachmentRoutes(entity),
        ...(entity.archive ? archiveRoutes(entity.archive) : []),
      ]),
    ),
  ];
  const operating = [
    ...(entities.some((entity) => entity.access.own) ? revocationRoutes : []),
    ...poisonRoutes,
    auditRoute,
    ...single.filter(({ period }) => !period).flatMap(about((entity) => [scanRoute(entity)])),
    ...withArchives(single)
      .filter(({ encrypted }) => encrypted.length > 0)
      .flatMap(about((entity) => [rewrapRoute(entity)])),
    ...entities.filter(canVerify).flatMap(about(verifyRoutes)),
    healthRoute,
    problemsRoute,
  ];
  const grants = grantRoute(entities);
  const described = [...ofEntities, ...(entities.some((entity) => entity.access.own) ? [grants] : []), ...operating];
  const openapi: Route = {
    name: 'openapi',
    method: 'GET',
    path: 'openapi.json',
    roles: undefined,
    summary: 'This description',
    success: { status: 200, description: 'OpenAPI 3.1', body: z.looseObject({ openapi: z.string() }) },
    handle: async () => ({ status: 200, body: openapiOf([...described, openapi]) }),
  };
  const all = [...described, openapi];
  const errors = routeErrors(withArchives(entities), { own: [grants, ...operating, openapi], all });
  if (errors.length > 0) throw new Error(`The model is not valid.\n${errors.join('\n')}`);
  return all;
}

/** The routes of an entity, which say that they are about it. */
function about(routesFor: (entity: Entity) => readonly Route[]) {
  return (entity: Entity): Route[] => routesFor(entity).map((route) => ({ ...route, entity }));
}
