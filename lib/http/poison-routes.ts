import { z } from 'zod';
import { canReadWhole } from '../access/rule.ts';
import { omit, withArchives } from '../define/entity.ts';
import { parse } from '../define/validation.ts';
import { dropPoison, listPoison, Poison, PoisonFilter, replayPage, replayPoison } from '../engine/consume/poison.ts';
import { nextLink, PAGE_QUERY, pageOf } from './paging.ts';
import type { RequestContext, Route } from './route.ts';

const PATH = 'operations/poison';
const roles = ['operator'] as const;

/** Without the text where it is about an entity that the caller may not read: it has keys of it, and of its indexes. */
const VisiblePoison = Poison.partial({ text: true });
const About = z.object({ entity: z.string() });

/** What an operator does with messages that could not be handled. */
export const poisonRoutes: readonly Route[] = [
  {
    name: 'operations-poison-list',
    method: 'GET',
    path: PATH,
    roles,
    query: PAGE_QUERY,
    summary: 'Messages that could not be handled, newest first',
    success: {
      status: 200,
      description: 'The messages',
      body: z.object({ items: z.array(VisiblePoison) }),
      headers: ['Link'],
    },
    handle: list,
  },
  {
    name: 'operations-poison-replay',
    method: 'POST',
    path: `${PATH}/{id}/replay`,
    roles,
    summary: 'Send a message to its queue once more and take it off the list',
    success: { status: 202, description: 'Sent', body: Poison.pick({ id: true, queue: true }) },
    handle: async ({ app, params }) => {
      const { id, queue } = await replayPoison(app.engine, params.id ?? '');
      return { status: 202, body: { id, queue } };
    },
  },
  {
    name: 'operations-poison-replays',
    method: 'POST',
    path: `${PATH}/replays`,
    roles,
    query: PAGE_QUERY,
    summary: 'Send a page of messages again, of one queue or with a text in their reason, and take them off the list',
    requestBody: PoisonFilter,
    success: {
      status: 202,
      description: 'Those that were sent; the header Link names the next page, if there is more',
      body: z.object({ replayed: z.array(z.string()) }),
      headers: ['Link'],
    },
    handle: async (call) => {
      const filter = parse(PoisonFilter, await call.json());
      const bound = JSON.stringify([PATH, 'replays', filter]);
      const { top, after } = await pageOf(call, bound);
      const { replayed, last, more } = await replayPage(call.app.engine, { ...filter, limit: top, after: after?.row });
      const next = more && last ? { row: last } : undefined;
      const headers = await nextLink(call, next, { path: `/api/${PATH}/replays`, bound });
      return { status: 202, body: { replayed }, headers };
    },
  },
  {
    name: 'operations-poison-drop',
    method: 'DELETE',
    path: `${PATH}/{id}`,
    roles,
    summary: 'Take a message off the list for good',
    success: { status: 204, description: 'Dropped' },
    handle: async ({ app, params }) => {
      await dropPoison(app.engine, params.id ?? '');
      return { status: 204 };
    },
  },
];

async function list(call: RequestContext) {
  const { engine } = call.app;
  const { top, after } = await pageOf(call, PATH);
  const { items, more } = await listPoison(engine, { limit: top, after: after?.row });
  const last = items.at(-1);
  const next = more && last ? { row: last.id } : undefined;
  return {
    status: 200,
    body: { items: items.map((item) => visible(call, item)) },
    headers: await nextLink(call, next, { path: `/api/${PATH}`, bound: PATH }),
  };
}

function visible({ app, caller }: RequestContext, poison: Poison): z.infer<typeof VisiblePoison> {
  const about = withArchives(app.entities).find(({ name }) => name === entityIn(poison.text));
  return about && !canReadWhole(about, caller) ? VisiblePoison.parse(omit(poison, ['text'])) : poison;
}

/** Every message of this app names its entity. */
function entityIn(text: string): string | undefined {
  try {
    return About.safeParse(JSON.parse(text)).data?.entity;
  } catch {
    return undefined;
  }
}
