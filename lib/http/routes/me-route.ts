import { me } from '../../api/me.ts';
import type { LinkedModel } from '../../define/define-model.ts';
import { bind } from '../bind.ts';
import { NO_STORE, type Route } from '../route.ts';

/** Tells a page who has signed in. */
export function meRoute(model: LinkedModel): Route {
  return bind(me(model), {
    method: 'GET',
    path: 'me',
    success: { status: 200, description: 'The caller' },
    read: () => undefined,
    present: (body) => ({ status: 200, headers: NO_STORE, body }),
  });
}
