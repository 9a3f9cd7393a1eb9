import { createApiHandler, createResponder } from '../../lib/http/api-handler.ts';
import { bind, readRequestId } from '../../lib/http/bind.ts';
import { createStaticFolder } from '../../lib/http/console.ts';
import { flattenUnions } from '../../lib/http/flatten-unions.ts';
import { createHandler } from '../../lib/http/handler.ts';
import { toJsonSchema } from '../../lib/http/json-schema.ts';
import { describeRoutes } from '../../lib/http/openapi.ts';
import { createExample, createMatchingText, matchesPattern } from '../../lib/http/openapi-examples.ts';
import { PROBLEM_TYPE, toProblem } from '../../lib/http/problem.ts';
import { PROBLEMS } from '../../lib/http/problem-kinds.ts';
import {
  filterParameters,
  LIST_QUERY,
  PAGE_QUERY,
  readFilter,
  readPageQuery,
  readSelect,
  toNextLink,
} from '../../lib/http/query.ts';
import { catchProblems, toResponse } from '../../lib/http/response.ts';
import { EXPLANATION_TYPE, rootOf, tagOf } from '../../lib/http/route.ts';
import { accountsRoute } from '../../lib/http/routes/accounts-route.ts';
import { entityReadRoutes } from '../../lib/http/routes/entity-read-routes.ts';
import { grantRoute } from '../../lib/http/routes/grant-routes.ts';
import { healthRoute } from '../../lib/http/routes/health-route.ts';
import { describeModel, modelRoute } from '../../lib/http/routes/model-route.ts';
import { operatorRoutes } from '../../lib/http/routes/operator-routes.ts';
import { createRoutes } from '../../lib/http/routes.ts';

export type { App, RequestContext, Route } from '../../lib/http/route.ts';

/** Routes, queries, problems and the description of the API (lib/http). */
export const httpDoor = {
  EXPLANATION_TYPE,
  LIST_QUERY,
  PAGE_QUERY,
  PROBLEMS,
  PROBLEM_TYPE,
  accountsRoute,
  bind,
  catchProblems,
  createApiHandler,
  createExample,
  createHandler,
  createMatchingText,
  createResponder,
  createRoutes,
  createStaticFolder,
  describeModel,
  describeRoutes,
  entityReadRoutes,
  filterParameters,
  flattenUnions,
  grantRoute,
  healthRoute,
  matchesPattern,
  modelRoute,
  operatorRoutes,
  readFilter,
  readPageQuery,
  readRequestId,
  readSelect,
  rootOf,
  tagOf,
  toJsonSchema,
  toNextLink,
  toProblem,
  toResponse,
} as const;
