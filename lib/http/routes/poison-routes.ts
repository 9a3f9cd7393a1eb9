import { z } from 'zod';
import { canReadKeys } from '../../access/rule.ts';
import type { View } from '../../api/operation.ts';
import { omit } from '../../base/values.ts';
import { parse } from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { dropPoison, listPoison, Poison, PoisonFilter, replayPage, replayPoison } from '../../engine/consume/poison.ts';
import type { PageOptions } from '../../engine/read/retrieve.ts';
import { bind, bindPage, listOf } from '../bind.ts';
import { PAGE_QUERY } from '../query.ts';
import type { RequestContext, Route } from '../route.ts';

const PATH = 'operations/poison';

/** Without the text if the caller may not see the keys of entities and indexes in it. */
const VisiblePoison = Poison.partial({ text: true });
const Sent = Poison.pick({ id: true, queue: true });
const About = z.object({ entity: z.string() });

export function poisonRoutes(entities: readonly Entity[], operatorRole: string): Route[] {
  const roles = [operatorRole];
  const readId = ({ params }: RequestContext) => ({ id: params.id ?? '' });
  return [
    bindPage(
      {
        name: 'operations-poison-list',
        summary: 'List messages that could not be handled, newest first',
        kind: 'read',
        roles,
        output: () => listOf(VisiblePoison),
        async run({ engine, caller }, { top, after }: PageOptions) {
          const { items, more } = await listPoison(engine, { limit: top, after: after?.row });
          const last = items.at(-1);
          const visible = items.map((item) => hideText(entities, caller, item));
          return { items: visible, next: more && last ? { row: last.id } : undefined };
        },
      },
      { path: PATH, query: PAGE_QUERY, success: { status: 200, description: 'A page of messages' } },
    ),
    bind(
      {
        name: 'operations-poison-replay',
        summary: 'Send a message to its queue again and remove it from the list',
        kind: 'write',
        roles,
        output: () => Sent,
        run: async ({ engine }, { id }: { readonly id: string }) => Sent.parse(await replayPoison(engine, id)),
      },
      { method: 'POST', path: `${PATH}/{id}/replay`, success: { status: 202, description: 'Sent' }, read: readId },
    ),
    bindPage(
      {
        name: 'operations-poison-replays',
        summary:
          'Send a page of messages to their queues again, filtered by queue or by text of the reason, and remove them from the list',
        kind: 'write',
        roles,
        input: () => PoisonFilter,
        output: () => z.object({ replayed: z.array(z.string()) }),
        async run({ engine }, { top, after, queue, reason }: PageOptions & z.infer<typeof PoisonFilter>) {
          const page = { queue, reason, limit: top, after: after?.row };
          const { replayed, last, more } = await replayPage(engine, page);
          return { replayed, next: more && last ? { row: last } : undefined };
        },
      },
      {
        method: 'POST',
        path: `${PATH}/replays`,
        query: PAGE_QUERY,
        success: { status: 202, description: 'The ids of the messages sent' },
        read: async (context) => parse(PoisonFilter, await context.json()),
      },
    ),
    bind(
      {
        name: 'operations-poison-drop',
        summary: 'Delete a message from the list',
        kind: 'write',
        roles,
        run: ({ engine }, { id }: { readonly id: string }) => dropPoison(engine, id),
      },
      { method: 'DELETE', path: `${PATH}/{id}`, success: { status: 204, description: 'Deleted' }, read: readId },
    ),
  ];
}

function hideText(entities: readonly Entity[], caller: View['caller'], poison: Poison): z.infer<typeof VisiblePoison> {
  const isVisible = !caller || canReadKeys(entities, entityNameIn(poison.text), caller);
  return isVisible ? poison : VisiblePoison.parse(omit(poison, ['text']));
}

/** Every message of this app names its entity. */
function entityNameIn(text: string): string | undefined {
  try {
    return About.safeParse(JSON.parse(text)).data?.entity;
  } catch {
    return undefined;
  }
}
