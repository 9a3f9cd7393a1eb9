import { z } from 'zod';
import { canReadWhole } from '../../access/rule.ts';
import type { Operation, View } from '../../api/operation.ts';
import { RowkeyError } from '../../base/errors.ts';
import { omit } from '../../base/values.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { type Finding, Findings, VisibleFinding } from '../../define/declaration/finding.ts';
import { shapesOf } from '../../define/places/index-entries.ts';
import type { PageOptions } from '../../engine/read/retrieve.ts';
import { cleanUpIndex } from '../../operations/index-clean-up.ts';
import { markBuilt } from '../../operations/model-guard.ts';
import { rewrapEntities } from '../../operations/rewrap.ts';
import { canVerify, type VerifyPage, VerifyPosition, verifyPage } from '../../operations/verify.ts';
import { readVerifyRun, VerifyRun } from '../../operations/verify-run.ts';
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
  const run = describeUpkeep(
    entity,
    'verify',
    (what) => `Get the result of the last weekly consistency check of ${what}`,
  );
  const page = describeUpkeep(
    entity,
    'verify',
    (what) => `Compare a page of ${what} with its index entries, copies, lists, counts and blobs`,
    { part: '-page' },
  );
  const reindex = describeUpkeep(entity, 'reindex', (what) => `Build an index, or copies, for a page of ${what}`, {
    below: '/{index}',
  });
  const cleanUp = describeUpkeep(
    entity,
    'clean-up',
    (what) => `Delete a page of entries of an index that ${what} no longer declares`,
    { below: '/{index}' },
  );
  const readIndex = ({ params }: RequestContext) => ({ index: params.index ?? '' });
  const built = listBuilt(entity);
  return [
    bind(
      {
        ...run.operation,
        kind: 'read',
        roles,
        output: () => VerifyRun.extend({ findings: z.array(VisibleFinding) }),
        run: async (view) => {
          const found = await readVerifyRun(view.engine, entity);
          if (!found) throw noRun(entity);
          return { ...found, findings: hideKeys(entity, view, found.findings) };
        },
      },
      { ...run.route, method: 'GET', success: { status: 200, description: 'The result' }, read: () => undefined },
    ),
    bindPage(
      walk(entity, { ...page.operation, roles }, ({ engine }, { repair, ...rest }: VerifyInput) =>
        verifyPage(engine, entity, { ...rest, repair }),
      ),
      {
        ...page.route,
        method: 'POST',
        query: { ...PAGE_QUERY, repair: 'true also repairs the findings; the default is false' },
        success: { status: 200, description: 'The findings' },
        read: ({ query }) => ({ repair: readBoolean(query, 'repair') }),
      },
    ),
    ...(built.length > 0
      ? [
          bindPage(
            walk(entity, { ...reindex.operation, roles }, async ({ engine }, { index, ...rest }: IndexInput) => {
              requireBuilt(entity, built, index);
              const walked = await verifyPage(engine, entity, { ...rest, repair: true, only: index });
              if (!walked.next && walked.left === 0) await markBuilt(engine, entity, index);
              return walked;
            }),
            {
              ...reindex.route,
              method: 'POST',
              query: PAGE_QUERY,
              success: { status: 200, description: 'The missing entries' },
              read: readIndex,
            },
          ),
        ]
      : []),
    bindPage(
      walk(entity, { ...cleanUp.operation, roles }, ({ engine }, { index, ...rest }: IndexInput) =>
        cleanUpIndex(engine, entity, index, { entities, ...rest }),
      ),
      {
        ...cleanUp.route,
        method: 'POST',
        query: PAGE_QUERY,
        success: { status: 200, description: 'The deleted entries' },
        read: readIndex,
      },
    ),
  ];
}

/** The names and the path of an operation on one entity, and what OpenAPI says of the operation on any of them. */
function describeUpkeep(
  entity: Entity,
  verb: string,
  summarize: (what: string) => string,
  { part = '', below = '' }: { readonly part?: string; readonly below?: string } = {},
) {
  const { name } = entity;
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

interface VerifyInput extends WalkOptions {
  readonly repair: boolean;
}
interface IndexInput extends WalkOptions {
  readonly index: string;
}
interface WalkOptions {
  readonly position: VerifyPosition | undefined;
  readonly top: number;
}
type PagedInput<Input extends WalkOptions> = Omit<Input, keyof WalkOptions> & PageOptions;

/** An operation on a page of the rows of an entity, which returns findings. */
function walk<Input extends WalkOptions>(
  entity: Entity,
  described: Pick<Operation<unknown, unknown>, 'name' | 'summary' | 'roles'>,
  walkPage: (view: View, input: Input) => Promise<VerifyPage>,
): Operation<
  PagedInput<Input>,
  { checked: number; findings: readonly Partial<Finding>[]; next: { row: string } | undefined }
> {
  return {
    ...described,
    kind: 'write',
    output: () => Findings,
    async run(view, { top, after, ...rest }) {
      const position = after && VerifyPosition.parse(JSON.parse(after.row));
      const { checked, findings, next } = await walkPage(view, { ...rest, top, position } as unknown as Input);
      return { checked, findings: hideKeys(entity, view, findings), next: next && { row: JSON.stringify(next) } };
    },
  };
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
      ? `No weekly consistency check of ${entity.name} has run yet.`
      : `No weekly consistency check of ${entity.name} runs, because no other row or blob depends on its rows.`,
  );
}

function hideKeys(entity: Entity, { caller }: View, findings: readonly Finding[]) {
  if (!caller || canReadWhole(entity, caller)) return findings;
  return findings.map((finding) => omit(finding, ['partition', 'row']));
}

const Rewrapped = z.object({ checked: z.int(), rewrapped: z.int(), failed: z.int() });

/** For operators, after a rotation of the key-encryption key. Repeat the request until the response links no next page. */
export function rewrapRoute(entity: Entity, { operatorRole }: Pick<UpkeepOptions, 'operatorRole'>): Route {
  const { operation, route } = describeUpkeep(
    entity,
    'rewrap',
    (what) => `Rewrap the data keys of a page of ${what} with the current key-encryption key`,
  );
  return bindPage(
    {
      ...operation,
      kind: 'write',
      roles: [operatorRole],
      output: () => Rewrapped,
      run: ({ engine }, page: PageOptions) => rewrapEntities(engine, entity, page),
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
