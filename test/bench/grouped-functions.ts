import { app, type HttpFunctionOptions } from '@azure/functions';
import { createRowkey, type FunctionsApp, fromEnvironment, registerFunctions } from '../../lib/index.ts';
import { model } from '../../model/model.ts';
import { appFunctions } from '../kit/api.ts';
import { httpDoor } from '../kit/http.ts';

/** The app of this repository with several functions for the API in place of one, in the grouping that GROUPING names. */

/** The template of the function that a route belongs to. `by-path` keeps the path as a parameter for the router. */
const GROUPINGS: Readonly<Record<string, (path: string) => string>> = {
  one: () => '{*path}',
  'by-entity': (path) => (path.includes('/') ? `${path.split('/')[0]}/{*rest}` : path),
  'by-path': (path) => path,
};

function register(name: string, options: HttpFunctionOptions): void {
  const templateOf = GROUPINGS[process.env.GROUPING ?? 'one'];
  if (!templateOf) throw new Error(`GROUPING is one of ${Object.keys(GROUPINGS).join(', ')}.`);
  const routes = name === appFunctions.API.root ? httpDoor.createRoutes(model) : [];
  if (routes.length === 0) app.http(name, options);
  const groups = Map.groupBy(routes, ({ path }) => templateOf(path));
  let count = 0;
  for (const [template, routes] of groups) {
    count += 1;
    app.http(template === '{*path}' ? name : `${routes[0]?.name}-${count}`, {
      ...options,
      methods: [...new Set(routes.map(({ method }) => method)), 'HEAD'],
      route: `api/${template}`,
      handler: (request, context) => {
        const path = template.replace(/\{\*?(\w+)\}/g, (_, parameter: string) => request.params[parameter] ?? '');
        Object.assign(request.params, { path });
        return options.handler(request, context);
      },
    });
  }
}

const grouped = { http: register, storageQueue: app.storageQueue, timer: app.timer, hook: app.hook } as FunctionsApp;
// A model with operations has their implementations in functions/rowkey.ts, which registers the functions itself.
const options = { model, ...fromEnvironment(process.env), operations: {} } as never;
registerFunctions(grouped, createRowkey(options), { routePrefix: '' });
