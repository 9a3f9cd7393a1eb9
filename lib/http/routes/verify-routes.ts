import { z } from 'zod';
import { canReadWhole } from '../../access/rule.ts';
import type { View } from '../../api/operation.ts';
import { RowkeyError } from '../../base/errors.ts';
import { omit } from '../../base/values.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { type Finding, Findings, VisibleFinding } from '../../define/declaration/finding.ts';
import { shapesOf } from '../../define/places/index-entries.ts';
import type { Engine } from '../../engine/engine.ts';
import type { PageOptions } from '../../engine/read/retrieve.ts';
import { cleanUpIndex } from '../../operations/index-clean-up.ts';
import { markBuilt } from '../../operations/model-record.ts';
import { rekeyPage } from '../../operations/rekey.ts';
import { ownRowsOf } from '../../operations/resources.ts';
import { rewrapEntities } from '../../operations/rewrap.ts';
import { canVerify, type VerifyPage, VerifyPosition, verifyPage } from '../../operations/verify.ts';
import { readVerifyRun, VerifyRun } from '../../operations/verify-run.ts';
import { inBackground } from '../../storage/load.ts';
import { bind, bindPage } from '../bind.ts';
import { PAGE_QUERY, readBoolean } from '../query.ts';
import type { RequestContext, Route } from '../route.ts';

interface UpkeepOptions {
  readonly operatorRole: string;
  /** All declared entities. */
  readonly entities: readonly Entity[];
}

/** For operators: compares a page with its index entries and repairs it, builds a new index, cleans up a removed one. */
export function verifyRoutes(entity: Entity, { operatorRole, entities }: UpkeepOptions): Route[] {
  const roles = [operatorRole];
  const last = describeUpkeep(entity, {
    verb: 'verify',
    summarize: (what) => `Get the result of the last regular consistency check of ${what}`,
  });
  const built = listBuilt(entity);
  const readIndex = ({ params }: RequestContext) => ({ index: params.index ?? '' });
  return [
    bind(
      {
        ...last.operation,
        kind: 'read',
        roles,
        output: () => VerifyRun.extend({ findings: z.array(VisibleFinding) }),
        async run(view) {
          const run = await readVerifyRun(view.engine, entity);
          if (!run) throw noRun(entity);
          return { ...run, findings: hideKeys(entity, view, run.findings) };
        },
      },
      { ...last.route, method: 'GET', success: { status: 200, description: 'The result' }, read: () => undefined },
    ),
    walkRoute(entity, roles, {
      verb: 'verify',
      part: '-page',
      summarize: (what) => `Compare a page of ${what} with its index entries, copies, lists, counts and blobs`,
      found: 'The findings',
      query: { repair: z.boolean().describe('true also repairs the findings; the default is false') },
      read: ({ query }) => ({ repair: readBoolean(query, 'repair') }),
      walk: (engine, page) => verifyPage(engine, entity, { ...page, isOwnRow: ownRowsOf(entities) }),
    }),
    ...(built.length === 0
      ? []
      : [
          walkRoute(entity, roles, {
            verb: 'reindex',
            below: '/{index}',
            summarize: (what) => `Build an index, or copies, for a page of ${what}`,
            found: 'The missing entries',
            read: readIndex,
            async walk(engine, { index, ...page }) {
              requireBuilt(entity, built, index);
              const walked = await verifyPage(engine, entity, { ...page, repair: true, only: index });
              if (!walked.next && walked.left === 0) await markBuilt(engine, entity, index);
              return walked;
            },
          }),
        ]),
    walkRoute(entity, roles, {
      verb: 'clean-up',
      below: '/{index}',
      summarize: (what) => `Delete a page of entries of an index that ${what} no longer declares`,
      found: 'The deleted entries',
      read: readIndex,
      walk: (engine, { index, ...page }) => cleanUpIndex(engine, entity, index, { entities, ...page }),
    }),
    ...(entity.formerKey
      ? [
          walkRoute(entity, roles, {
            verb: 'rekey',
            summarize: (what) => `Move a page of ${what} from their former key to their key`,
            found: 'The moved entities, and those that cannot be moved',
            read: () => ({}),
            walk: (engine, page) => rekeyPage(engine, entity, page),
          }),
        ]
      : []),
  ];
}

interface Upkeep {
  /** Begins the path, and the name after `operations-`. */
  readonly verb: string;
  /** Ends the name. */
  readonly part?: string;
  /** Ends the path. */
  readonly below?: string;
  readonly summarize: (what: string) => string;
}

/** What is said of an operation on one entity, and in OpenAPI of the operation on any of them. */
function describeUpkeep({ name }: Entity, { verb, part = '', below = '', summarize }: Upkeep) {
  return {
    operation: { name: `operations-${verb}-${name}${part}`, summary: summarize(name) },
    route: {
      path: `operations/${verb}/${name}${below}`,
      ofAll: {
        name: `operations-${verb}${part}`,
        path: `operations/${verb}/{entity}${below}`,
        summary: summarize('an entity'),
      },
    },
  };
}

interface Walk<Input> extends Upkeep {
  /** What the response describes. */
  readonly found: string;
  readonly query?: Route['query'];
  readonly read: (context: RequestContext) => Input;
  readonly walk: (
    engine: Engine,
    page: Input & { readonly position: VerifyPosition | undefined; readonly top: number },
  ) => Promise<VerifyPage>;
}

/** A route that works on a page of the rows of an entity, and returns findings. */
function walkRoute<Input>(
  entity: Entity,
  roles: readonly string[],
  { found, query = {}, read, walk, ...upkeep }: Walk<Input>,
): Route {
  const { operation, route } = describeUpkeep(entity, upkeep);
  return bindPage(
    {
      ...operation,
      kind: 'write',
      roles,
      output: () => Findings,
      async run(view, { given, top, after }: PageOptions & { readonly given: Input }) {
        const position = after && VerifyPosition.parse(JSON.parse(after.row));
        const page = await inBackground(() => walk(view.engine, { ...given, top, position }));
        const { checked, findings, foreign, next } = page;
        const visible = hideKeys(entity, view, findings);
        const others = foreign ? { foreign } : {};
        return { checked, findings: visible, ...others, next: next && { row: JSON.stringify(next) } };
      },
    },
    {
      ...route,
      method: 'POST',
      query: { ...PAGE_QUERY, ...query },
      success: { status: 200, description: found },
      read: (context) => ({ given: read(context) }),
    },
  );
}

/** The names of what is built from the stored entities: indexes, and copies of other entities' fields. */
function listBuilt(entity: Entity): string[] {
  return [...new Set([...Object.keys(entity.indexes), ...Object.keys(shapesOf(entity))])];
}

function requireBuilt({ name }: Entity, built: readonly string[], index: string): void {
  if (built.includes(index)) return;
  throw new RowkeyError('not-found', `${name} has no index "${index.slice(0, 100)}" to build.`, {
    field: 'index',
    accepted: built.join(', '),
  });
}

function noRun(entity: Entity): RowkeyError {
  return new RowkeyError(
    'not-found',
    canVerify(entity)
      ? `No regular consistency check of ${entity.name} has run yet.`
      : `No regular consistency check of ${entity.name} runs, because no other row or blob depends on its rows.`,
  );
}

function hideKeys(entity: Entity, { caller }: View, findings: readonly Finding[]) {
  if (!caller || canReadWhole(entity, caller)) return findings;
  return findings.map((finding) => omit(finding, ['partition', 'row']));
}

const Rewrapped = z.object({ checked: z.int(), rewrapped: z.int(), failed: z.int() });

/** For operators, after a rotation of the key-encryption key. Repeat the request until the response links no next page. */
export function rewrapRoute(entity: Entity, { operatorRole }: Pick<UpkeepOptions, 'operatorRole'>): Route {
  const { operation, route } = describeUpkeep(entity, {
    verb: 'rewrap',
    summarize: (what) => `Rewrap the data keys of a page of ${what} with the current key-encryption key`,
  });
  return bindPage(
    {
      ...operation,
      kind: 'write',
      roles: [operatorRole],
      output: () => Rewrapped,
      run: ({ engine }, page: PageOptions) => inBackground(() => rewrapEntities(engine, entity, page)),
    },
    {
      ...route,
      method: 'POST',
      query: PAGE_QUERY,
      success: {
        status: 200,
        description:
          'How many entities were read, rewrapped, and could not be decrypted; the Link header names the next page',
      },
    },
  );
}
