import { app as functions } from '@azure/functions';
import { app } from '../lib/app.ts';
import { respondWith } from '../lib/http/respond.ts';
import { routesOf } from '../lib/http/routes.ts';
import { deployment } from '../lib/model/deployment.ts';

/** One function for each route that follows from the declaration of what is stored. */
for (const route of routesOf(deployment))
  functions.http(route.name, {
    methods: [route.method],
    route: route.path,
    // Callers are known by their tokens, which every route but two asks for; a key in a URL would be a second secret.
    authLevel: 'anonymous',
    handler: respondWith(app, route),
  });
