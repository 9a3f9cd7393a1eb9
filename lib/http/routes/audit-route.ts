import { z } from 'zod';
import { GRANTS } from '../../access/grant-limits.ts';
import { canReadKeys } from '../../access/rule.ts';
import { DAY_MS } from '../../base/time.ts';
import { omit } from '../../base/values.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { POISON_TABLE } from '../../engine/consume/poison.ts';
import { ChangeRecord } from '../../engine/note-change.ts';
import type { PageOptions } from '../../engine/read/retrieve.ts';
import { readChanges } from '../../operations/audit-log.ts';
import { bindPage, listOf } from '../bind.ts';
import { PAGE_QUERY, queryError } from '../query.ts';
import type { RequestContext, Route } from '../route.ts';

/** Without the key if the caller may not see it. */
const VisibleChange = ChangeRecord.partial({ partition: true, row: true });
/** The keys of these records have no values of entities. No entity has such a name. */
const OF_THE_ENGINE = [GRANTS, POISON_TABLE];
const Instant = z.iso.datetime({ offset: true });
/** An offset can move an instant out of these years, and the names of the blobs have years of four digits. */
const FIRST_INSTANT = Date.parse('0000-01-01T00:00:00Z');
const LAST_INSTANT = Date.parse('9999-12-31T23:59:59.999Z');
const MAX_DAYS = 31;

interface AuditInput extends PageOptions {
  /** Milliseconds; `from` inclusive, `to` exclusive. */
  readonly from: number;
  readonly to: number;
}

export function auditRoute(entities: readonly Entity[], operatorRole: string): Route {
  return bindPage(
    {
      name: 'operations-audit',
      summary:
        'List the changes made through this API: who, what and when; with the keys of entities that the caller may read, without values',
      kind: 'read',
      roles: [operatorRole],
      output: () => listOf(VisibleChange),
      async run({ engine, caller }, { from, to, after, top }: AuditInput) {
        const { items, next } = await readChanges(engine, { from, to, after, limit: top });
        const isVisible = ({ entity }: ChangeRecord) =>
          !caller || OF_THE_ENGINE.includes(entity) || canReadKeys(entities, entity, caller);
        return { items: items.map((item) => (isVisible(item) ? item : omit(item, ['partition', 'row']))), next };
      },
    },
    {
      path: 'operations/audit',
      query: {
        from: 'Start, an ISO instant; required',
        to: `End, an ISO instant, exclusive, at most ${MAX_DAYS} days after from; required`,
        ...PAGE_QUERY,
      },
      success: { status: 200, description: 'A page of changes' },
      read(context) {
        const [from, to] = [readInstant(context, 'from'), readInstant(context, 'to')];
        if (from >= to) throw queryError('to', 'must be after from', 'an instant after from');
        if (to - from > MAX_DAYS * DAY_MS)
          throw queryError('to', 'is too long after from', `at most ${MAX_DAYS} days after from`);
        return { from, to };
      },
    },
  );
}

function readInstant({ query }: RequestContext, name: 'from' | 'to'): number {
  const text = query.get(name);
  const instant = Instant.safeParse(text).success ? Date.parse(text ?? '') : Number.NaN;
  if (instant >= FIRST_INSTANT && instant <= LAST_INSTANT) return instant;
  const accepted = 'an ISO instant such as 2026-11-20T09:00:00Z, in UTC from year 0000 to year 9999';
  throw queryError(name, text === null ? 'is required' : 'is not an instant', accepted);
}
