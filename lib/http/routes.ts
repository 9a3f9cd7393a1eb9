import { z } from 'zod';
import { needsImport } from '../api/imports.ts';
import { archivedChildren, type Entity, withArchives } from '../define/declaration/entity.ts';
import type { LinkedModel } from '../define/define-model.ts';
import { serveBuiltOnce } from './built-once.ts';
import { problemsRoute } from './problem.ts';
import { queryError } from './query.ts';
import { type Route, tagOf } from './route.ts';
import { canConflict, routeErrors } from './route-conflicts.ts';
import { appOperationRoute } from './routes/app-operation-route.ts';
import { attachmentRoutes } from './routes/attachment-routes.ts';
import { backupRoute, historyRoute, inPlaceRoutes, undeleteRoute } from './routes/backup-routes.ts';
import { entityReadRoutes, scanRoute } from './routes/entity-read-routes.ts';
import { deleteRoutes, entityWriteRoutes } from './routes/entity-write-routes.ts';
import { grantRoute, periodArchiveRoutes, revocationRoutes } from './routes/grant-routes.ts';
import { healthRoute } from './routes/health-route.ts';
import { archivedFileRoutes, importRoute } from './routes/import-routes.ts';
import { incompleteIndexRoutes, indexRoutes } from './routes/index-routes.ts';
import { meRoute } from './routes/me-route.ts';
import { modelRoute } from './routes/model-route.ts';
import { operatorRoutes } from './routes/operator-routes.ts';
import { queryRoute } from './routes/query-route.ts';
import { seriesRoutes } from './routes/series-routes.ts';
import { transactRoute } from './routes/transact-route.ts';
import { userDataRoutes } from './routes/user-data-routes.ts';
import { userRoutes } from './routes/user-routes.ts';
import { rewrapRoute, verifyRoutes } from './routes/verify-routes.ts';

/**
 * All routes of a deployment. Throws a plain error with a sentence for every pair of routes that could match the same
 * request, so that a request never reaches the wrong route.
 */
export function createRoutes(model: LinkedModel): Route[] {
  const { list: entities, operatorRole } = model;
  const hasBackup = model.backup !== undefined;
  const single = entities.filter(({ series }) => !series);
  const ofEntities = [
    ...entities.filter(({ series }) => series).flatMap(withEntity(seriesRoutes)),
    ...single.flatMap(
      withEntity((entity) => [
        ...entityReadRoutes(entity, { hasBackup }),
        ...entityWriteRoutes(entity),
        ...indexRoutes(entity),
        ...attachmentRoutes(entity),
        // An archive is written only by archiving.
        ...(entity.archive
          ? [...entityReadRoutes(entity.archive, { hasBackup }), ...deleteRoutes(entity.archive)]
          : []),
      ]),
    ),
  ];
  const archived = withArchives(single)
    .filter(({ isArchive }) => isArchive)
    .flatMap((archive) => [archive, ...archivedChildren(archive)]);
  const all = [...entities, ...archived];
  const upkeep = { operatorRole, entities };
  const operationRoutes: Route[] = [
    ...operatorRoutes(model),
    ...(model.blocksUsers ? userRoutes(operatorRole) : []),
    ...(entities.some(issuesGrants) ? revocationRoutes(operatorRole) : []),
    ...(entities.some(({ period }) => period?.archiveTo) ? periodArchiveRoutes(operatorRole) : []),
    ...all.flatMap(withEntity((entity) => [scanRoute(entity, operatorRole)])),
    ...all.filter(needsImport).flatMap(withEntity((entity) => [importRoute(entity, operatorRole)])),
    ...archived.flatMap(withEntity((entity) => archivedFileRoutes(entity, operatorRole))),
    ...withArchives(single)
      .filter(({ encrypted }) => encrypted.length > 0)
      .flatMap(withEntity((entity) => [rewrapRoute(entity, upkeep)])),
    ...(model.backup
      ? backupRoutes(
          all.filter(({ series }) => !series),
          model,
        )
      : []),
    ...entities.filter(({ period }) => !period).flatMap(withEntity((entity) => verifyRoutes(entity, upkeep))),
    ...Object.values(model.operations).map((declared) => appOperationRoute(declared, entities)),
    ...(single.length > 0 ? [queryRoute(withArchives(single)), transactRoute(entities)] : []),
    meRoute(model),
    ...userDataRoutes(model),
    healthRoute,
    modelRoute(model),
    problemsRoute,
  ];
  const grants = grantRoute(entities);
  const described = [
    ...ofEntities,
    ...(entities.some((entity) => entity.access.own) ? [grants] : []),
    ...operationRoutes,
  ];
  const openapi: Route = {
    name: 'openapi',
    method: 'GET',
    path: 'openapi.json',
    kind: 'read',
    roles: undefined,
    summary: 'Get this description of the API',
    query: { [TAG]: 'Describes only the operations with this tag: the name of an entity, or operations' },
    cacheable: true,
    success: {
      status: 200,
      description: 'OpenAPI 3.1',
      body: () => z.looseObject({ openapi: z.string() }),
      headers: ['ETag'],
    },
    // Loaded at the first request, as no other route needs the description.
    handle: serveBuiltOnce({
      readPart: ({ query }) => readTag(query, routes),
      build: async (root, tag) => {
        const { describeRoutes } = await import('./openapi.ts');
        return describeRoutes(tag === '' ? routes : routes.filter((route) => tagOf(route) === tag), root, model.anyone);
      },
    }),
  };
  const routes = [...described, openapi];
  const errorsOf = (some: readonly Route[]) =>
    routeErrors(withArchives(entities), { own: [grants, ...operationRoutes, openapi], all: some });
  const errors = errorsOf(routes);
  if (errors.length > 0) throw new Error(`The model is not valid.\n${errors.join('\n')}`);
  // A path that may be that of an entity is left to the entity.
  const isFree = (route: Route) =>
    errorsOf([...routes.filter((other) => other.entity === route.entity && canConflict(other, route)), route])
      .length === 0;
  const rejecting = single.flatMap(withEntity(incompleteIndexRoutes)).filter(isFree);
  return [...routes, ...rejecting];
}

/** The routes of what a backup has of each entity. */
function backupRoutes(all: readonly Entity[], { backup, operatorRole }: LinkedModel): Route[] {
  const roles = backup?.roles ?? [operatorRole];
  return [
    ...(backup ? [backupRoute(backup.days, operatorRole)] : []),
    ...all.flatMap(withEntity((entity) => [historyRoute(entity, roles), undeleteRoute(entity, operatorRole)])),
    ...all
      .filter(({ childOf }) => !childOf)
      .flatMap(
        withEntity((entity) =>
          inPlaceRoutes(
            entity,
            operatorRole,
            all.find(({ archive }) => archive === entity),
          ),
        ),
      ),
  ];
}

const TAG = 'tag';

/** The tag of some routes, or an empty text for all of them. Throws `invalid-input`. */
function readTag(query: URLSearchParams, routes: readonly Route[]): string {
  const tag = query.get(TAG) ?? '';
  const tags = [...new Set(routes.map(tagOf))];
  if (tag !== '' && !tags.includes(tag)) throw queryError(TAG, 'names no tag', tags.join(', '));
  return tag;
}

function issuesGrants({ access, attachments, period }: Entity): boolean {
  return access.own !== undefined || Object.keys(attachments).length > 0 || period?.archiveTo !== undefined;
}

function withEntity(routesFor: (entity: Entity) => readonly Route[]) {
  return (entity: Entity): Route[] => routesFor(entity).map((route) => ({ ...route, entity }));
}
