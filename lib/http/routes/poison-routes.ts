import { z } from 'zod';
import { canReadKeys } from '../../access/rule.ts';
import { omit } from '../../base/values.ts';
import { parse } from '../../define/codec/validation.ts';
import { dropPoison, listPoison, Poison, PoisonFilter, replayPage, replayPoison } from '../../engine/consume/poison.ts';
import { PAGE_QUERY, respondWithPage } from '../query.ts';
import type { OperatorRoute, RequestContext } from '../route.ts';

const PATH = 'operations/poison';

/** Without the text if the caller may not see the keys of entities and indexes in it. */
const VisiblePoison = Poison.partial({ text: true });
const About = z.object({ entity: z.string() });

export const poisonRoutes: readonly OperatorRoute[] = [
  {
    name: 'operations-poison-list',
    method: 'GET',
    path: PATH,
    query: PAGE_QUERY,
    summary: 'List messages that could not be handled, newest first',
    success: {
      status: 200,
      description: 'A page of messages',
      body: () => z.object({ items: z.array(VisiblePoison) }),
      headers: ['Link'],
    },
    handle: (context) =>
      respondWithPage(context, { path: PATH }, async ({ top, after }) => {
        const { items, more } = await listPoison(context.app.engine, { limit: top, after: after?.row });
        const last = items.at(-1);
        const body = { items: items.map((item) => hideText(context, item)) };
        return { body, next: more && last ? { row: last.id } : undefined };
      }),
  },
  {
    name: 'operations-poison-replay',
    method: 'POST',
    path: `${PATH}/{id}/replay`,
    summary: 'Send a message to its queue again and remove it from the list',
    success: { status: 202, description: 'Sent', body: () => Poison.pick({ id: true, queue: true }) },
    handle: async ({ app, params }) => {
      const { id, queue } = await replayPoison(app.engine, params.id ?? '');
      return { status: 202, body: { id, queue } };
    },
  },
  {
    name: 'operations-poison-replays',
    method: 'POST',
    path: `${PATH}/replays`,
    query: PAGE_QUERY,
    summary:
      'Send a page of messages to their queues again, filtered by queue or by text of the reason, and remove them from the list',
    requestBody: () => PoisonFilter,
    success: {
      status: 202,
      description: 'The ids of the messages sent',
      body: () => z.object({ replayed: z.array(z.string()) }),
      headers: ['Link'],
    },
    handle: async (context) => {
      const filter = parse(PoisonFilter, await context.json());
      const path = `${PATH}/replays`;
      const bound = JSON.stringify([PATH, 'replays', filter]);
      return respondWithPage(context, { path, bound, status: 202 }, async ({ top, after }) => {
        const page = { ...filter, limit: top, after: after?.row };
        const { replayed, last, more } = await replayPage(context.app.engine, page);
        return { body: { replayed }, next: more && last ? { row: last } : undefined };
      });
    },
  },
  {
    name: 'operations-poison-drop',
    method: 'DELETE',
    path: `${PATH}/{id}`,
    summary: 'Delete a message from the list',
    success: { status: 204, description: 'Deleted' },
    handle: async ({ app, params }) => {
      await dropPoison(app.engine, params.id ?? '');
      return { status: 204 };
    },
  },
];

function hideText({ app, caller }: RequestContext, poison: Poison): z.infer<typeof VisiblePoison> {
  return canReadKeys(app.entities, entityNameIn(poison.text), caller)
    ? poison
    : VisiblePoison.parse(omit(poison, ['text']));
}

/** Every message of this app names its entity. */
function entityNameIn(text: string): string | undefined {
  try {
    return About.safeParse(JSON.parse(text)).data?.entity;
  } catch {
    return undefined;
  }
}
