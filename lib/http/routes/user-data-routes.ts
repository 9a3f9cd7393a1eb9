import { z } from 'zod';
import type { Operation } from '../../api/operation.ts';
import {
  countUserData,
  type Erased,
  type EraseInput,
  eraseOwnData,
  eraseUserData,
  listOwnData,
  UserDataSchemas,
} from '../../api/user-data.ts';
import { parse } from '../../define/codec/validation.ts';
import type { LinkedModel } from '../../define/define-model.ts';
import { userRowsOf } from '../../define/places/user-rows.ts';
import { bind, bindPage, listOf } from '../bind.ts';
import { PAGE_QUERY, readContinuation, toNextLink } from '../query.ts';
import { NO_STORE, type RequestContext, type Route, type RouteResult } from '../route.ts';
import { describeFailed, FailedRows, TIME_BUDGET_MS } from './failed-rows.ts';
import { User } from './user-routes.ts';

/** What the app has stored of a user, for the user and for operators. */

const Done = FailedRows.extend({ deleted: z.int(), changed: z.int() });
const CONTINUATION = { continuation: 'Where to continue; taken from the Link header of the previous response' };
const ERASED = {
  status: 200,
  description: 'What became of the rows; repeat with the Link header, if there is one, to erase the others',
  body: () => Done,
  headers: ['Link'],
} as const;

/** None for a model without entities of users. */
export function userDataRoutes(model: LinkedModel): Route[] {
  if (userRowsOf(model.list).length === 0) return [];
  const readUser = async ({ json }: RequestContext) => parse(User, await json());
  const routes = [
    bindPage(listOwnData(model), {
      path: 'me/data',
      query: PAGE_QUERY,
      success: { status: 200, description: 'A page of rows', body: () => listOf(UserDataSchemas.Row) },
    }),
    bindErasing(eraseOwnData(model), 'DELETE', 'me/data', () => ({})),
    bind(countUserData(model), {
      method: 'POST',
      path: 'operations/users/data',
      requestBody: () => User,
      success: {
        status: 200,
        description: 'The number of rows by entity',
        body: () => listOf(UserDataSchemas.Counted),
      },
      read: readUser,
      present: (items) => ({ status: 200, headers: NO_STORE, body: { items } }),
    }),
    bindErasing({ ...eraseUserData(model), input: () => User }, 'POST', 'operations/users/erase', readUser),
  ];
  // An explanation names the rows of a user, past the rules on rows.
  return routes.map((route) => ({ ...route, explains: model.list }));
}

interface Linked {
  readonly link: { readonly path: string; readonly bound: string };
}

function bindErasing(
  operation: Operation<EraseInput, Erased>,
  method: 'DELETE' | 'POST',
  path: string,
  readUser: (context: RequestContext) => Pick<EraseInput, 'subject'> | Promise<Pick<EraseInput, 'subject'>>,
): Route {
  return bind<EraseInput, EraseInput & Linked, Erased>(operation, {
    method,
    path,
    query: CONTINUATION,
    success: ERASED,
    async read(context) {
      const user = await readUser(context);
      const at = `${context.root}/${path}`;
      const bound = JSON.stringify(['erase', at, user.subject ?? context.caller.subject]);
      const after = await readContinuation(context, bound);
      return { ...user, after, until: context.engine.now() + TIME_BUDGET_MS, link: { path: at, bound } };
    },
    async present({ deleted, changed, failed, next }, context, { link }): Promise<RouteResult> {
      const body = { deleted, changed, ...describeFailed(failed, context) };
      return { status: 200, body, headers: await toNextLink(context, next, link) };
    },
  });
}
