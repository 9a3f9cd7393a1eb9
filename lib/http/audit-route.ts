import { z } from 'zod';
import { canReadWhole } from '../access/rule.ts';
import { type Entity, omit, withArchives } from '../define/entity.ts';
import { ChangeRecord } from '../engine/note-change.ts';
import { RowkeyError } from '../errors.ts';
import { readChanges } from '../operations/read-audit-log.ts';
import { nextLink, PAGE_QUERY, pageOf } from './paging.ts';
import { pathTo, type RequestContext, type Route, type RouteResult } from './route.ts';

/** Without the key where the caller may not read the entity. */
const VisibleChange = ChangeRecord.partial({ partition: true, row: true });
const Instant = z.iso.datetime({ offset: true });
/** An offset can move an instant out of these years, and the blobs of the audit log are named by years of four digits. */
const FIRST_INSTANT = Date.parse('0000-01-01T00:00:00Z');
const LAST_INSTANT = Date.parse('9999-12-31T23:59:59.999Z');
const MAX_DAYS = 31;
const DAY_MS = 24 * 60 * 60 * 1_000;

/** Who changed what, as the audit log has it. */
export const auditRoute: Route = {
  name: 'operations-audit',
  method: 'GET',
  path: 'operations/audit',
  roles: ['operator'],
  query: {
    from: 'The first instant; needed',
    to: `The instant before which it ends, at most ${MAX_DAYS} days after from; needed`,
    ...PAGE_QUERY,
  },
  summary:
    'The changes made through this API, by the hour: who, what and when; the keys of entities that the caller may read, and no values',
  success: {
    status: 200,
    description: 'The changes; the header Link names the next page, if there is more',
    body: z.object({ items: z.array(VisibleChange) }),
    headers: ['Link'],
  },
  handle: list,
};

async function list(call: RequestContext): Promise<RouteResult> {
  const [from, to] = [instantIn(call, 'from'), instantIn(call, 'to')];
  if (from >= to) throw wrong('to', 'is not after from', 'an instant after from');
  if (to - from > MAX_DAYS * DAY_MS) throw wrong('to', 'is too long after from', `at most ${MAX_DAYS} days after from`);
  const path = pathTo('operations', 'audit');
  const bound = JSON.stringify([path, from, to]);
  const { top, after } = await pageOf(call, bound);
  const { items, next } = await readChanges(call.app.engine, { from, to, after, limit: top });
  const unreadable = namesOf(call.app.entities.filter((entity) => !canReadWhole(entity, call.caller)));
  const visible = items.map((item) => (unreadable.has(item.entity) ? omit(item, ['partition', 'row']) : item));
  return { status: 200, body: { items: visible }, headers: await nextLink(call, next, { path, bound }) };
}

function namesOf(entities: readonly Entity[]): Set<string> {
  return new Set(withArchives(entities).map(({ name }) => name));
}

function instantIn({ query }: RequestContext, name: 'from' | 'to'): number {
  const text = query.get(name);
  const instant = Instant.safeParse(text).success ? Date.parse(text ?? '') : Number.NaN;
  if (instant >= FIRST_INSTANT && instant <= LAST_INSTANT) return instant;
  const accepted = 'an ISO instant such as 2026-11-20T09:00:00Z, in UTC from year 0000 to year 9999';
  throw wrong(name, text === null ? 'is needed' : 'is not an instant', accepted);
}

function wrong(field: string, why: string, accepted: string): RowkeyError {
  return new RowkeyError('invalid-input', `The query parameter ${field} ${why}.`, { field, accepted });
}
