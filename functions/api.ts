import { app as functions } from '@azure/functions';
import { app } from '../lib/app.ts';
import { ANY_METHOD, ANY_PATH, handlersOf, OTHER_REQUESTS } from '../lib/http/other-requests.ts';
import { routesOf } from '../lib/http/routes.ts';
import { deployment } from '../lib/model/deployment.ts';

const routes = routesOf(deployment);
const handlers = handlersOf(app, routes);
// Callers are known by their tokens, which every route but three asks for; a key in a URL would be a second secret.
const authLevel = 'anonymous';

/** One function for each route that follows from the declaration of what is stored. */
for (const route of routes)
  functions.http(route.name, {
    methods: [route.method, 'HEAD'],
    route: route.path,
    authLevel,
    handler: handlers.forRoute(route),
  });

functions.http(OTHER_REQUESTS, {
  methods: ANY_METHOD,
  route: ANY_PATH,
  authLevel,
  handler: handlers.forOthers,
});
