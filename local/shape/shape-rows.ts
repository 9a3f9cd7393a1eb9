import { type ESTree, Visitor } from 'rolldown/utils';
import type { Run } from './count-runs.ts';
import { findFolderCircles } from './folder-circles.ts';
import { countImplementers, membersOf } from './interfaces.ts';
import { findOptionPlaces } from './option-places.ts';
import { countLines, isOfLibrary, linesOf, readSourceFiles, type SourceFile } from './source-files.ts';

/** A row of the table in docs/internals/architecture.md. */
interface ShapeRow {
  readonly what: string;
  readonly count: number;
  /** A part of the cell that has the count. */
  readonly detail?: string;
  /** The largest count that the code is meant to have. */
  readonly bound?: number;
  /** A sentence. */
  readonly how: string;
}

/** The interfaces that a feature of the engine implements, each with the bound of its members. */
const INTERFACES = { Feature: 12, Projection: 8 };
/** The rooms whose folders are layers. */
const LAYERED = ['lib/define', 'lib/engine'];
/** The type of an option and its row. */
const MAX_OPTION_PLACES = 2;
/** The function that derives the index entries of an entity. */
const DERIVATION = 'indexEntriesOf';

/** Counts what follows from the sources alone: about a second. */
export function countSources(): readonly ShapeRow[] {
  const all = ['lib', 'examples'].flatMap((folder) => readSourceFiles(`${folder}/**/*.ts`));
  const lib = all.filter(({ path }) => isOfLibrary(path));
  return [
    ...Object.entries(INTERFACES).flatMap(([name, bound]) => countMembers(lib, name, bound)),
    {
      what: 'Type parameters of `defineEntity`',
      count: countTypeParameters(lib, 'defineEntity'),
      bound: 3,
      how: 'In the signature of the function.',
    },
    ...countOptionPlaces([...lib, ...readSourceFiles('web/src/**/*.{ts,tsx}')], membersOf(lib, 'Declaration')),
    ...LAYERED.map((room) => countCircles(lib, room, 0)),
    countCircles(lib, 'lib'),
    ...countStatements(lib),
    {
      what: 'Lines of `lib`',
      count: sumLines(lib),
      bound: 27_700,
      how: 'With comments and empty lines, without the example packs.',
    },
    { what: 'Lines of `lib` and the example packs', count: sumLines(all), how: 'With the tests of the packs.' },
    {
      what: 'Lines of `test`',
      count: countLines('test/**/*.ts'),
      bound: 45_300,
      how: 'All TypeScript files of the folder.',
    },
  ];
}

/** The rows of what ran. Throws if the function whose calls have a bound is not called. */
export function describeRuns({ create, get }: { readonly create: Run; readonly get: Run }): readonly ShapeRow[] {
  const derivations = create.callsOf(DERIVATION);
  if (derivations === 0) throw new Error(`A create does not call ${DERIVATION}: give the name of its successor here.`);
  const request = 'of the third such request of a process, from the hook of the host to the response.';
  return [
    {
      what: 'Files that a GET by key runs',
      count: get.files,
      bound: 28,
      how: 'Files of `lib` with at least one function that runs.',
    },
    {
      what: 'Functions that a GET by key runs',
      count: get.functions,
      bound: 85,
      how: `Functions of \`lib\`, with those without a name: V8's coverage ${request} The employee has an encrypted field.`,
    },
    { what: 'Files that a create runs', count: create.files, how: 'As for a GET.' },
    {
      what: 'Functions that a create runs',
      count: create.functions,
      how: 'As for a GET. The employee has indexes of each kind.',
    },
    {
      what: 'Function calls of a create',
      count: create.calls,
      bound: 1_600,
      how: 'The calls of these functions.',
    },
    {
      what: `Calls of \`${DERIVATION}\` in a create`,
      count: derivations,
      bound: 2,
      how: 'How often the index entries are derived from the entity.',
    },
  ];
}

function countMembers(lib: readonly SourceFile[], name: string, bound: number): readonly ShapeRow[] {
  const members = membersOf(lib, name);
  if (!members) return [];
  const implementers = countImplementers(lib, name);
  const single = [...members].filter((member) => implementers.get(member) === 1);
  return [
    {
      what: `Members of \`${name}\``,
      count: members.size,
      bound,
      how: 'Those of the interface and of the interfaces that it extends.',
    },
    {
      what: `Members of \`${name}\` with one implementer`,
      count: single.length,
      how: `Members that only one object of the type \`${name}\` has.`,
    },
  ];
}

function sumLines(files: readonly SourceFile[]): number {
  return files.reduce((sum, { text }) => sum + linesOf(text), 0);
}

function countTypeParameters(lib: readonly SourceFile[], name: string): number {
  const found: ESTree.Function[] = [];
  for (const { program } of lib.filter(({ text }) => text.includes(`function ${name}`)))
    new Visitor({ FunctionDeclaration: (node) => void (node.id?.name === name && found.push(node)) }).visit(program);
  const [declared] = found;
  if (!declared) throw new Error(`lib has no function ${name}: see local/shape/shape-rows.ts.`);
  return declared.typeParameters?.params.length ?? 0;
}

function countOptionPlaces(files: readonly SourceFile[], options: ReadonlySet<string> = new Set()) {
  const places = [...findOptionPlaces(files, options)].toSorted(([, one], [, other]) => other.size - one.size);
  const [most, middle] = [places[0], places[places.length >> 1]];
  if (!most || !middle)
    throw new Error('lib has no interface Declaration with options: see local/shape/shape-rows.ts.');
  const rows: readonly ShapeRow[] = [
    {
      what: 'Places that state an option of a declaration, at most',
      count: most[1].size,
      // The test that fails names the places.
      ...(most[1].size > MAX_OPTION_PLACES ? { detail: `\`${most[0]}\`: ${[...most[1]].join(', ')}` } : {}),
      bound: MAX_OPTION_PLACES,
      how: 'Types, objects, arrays and unions in `lib` and `web` that list the name of the option with at least two others, and the `option` of a feature. Uses are not counted.',
    },
    {
      what: 'Places that state an option, in the median',
      count: middle[1].size,
      bound: MAX_OPTION_PLACES,
      how: 'Of all options of `Declaration`.',
    },
  ];
  return rows;
}

function countCircles(lib: readonly SourceFile[], room: string, bound?: number): ShapeRow {
  const circles = findFolderCircles(lib.filter(({ path }) => path.startsWith(`${room}/`)));
  return {
    what: `Circles of folders in \`${room}\``,
    count: circles.length,
    ...(circles.length > 0 ? { detail: `of ${circles.map(({ length }) => length).join(' and ')} folders` } : {}),
    ...(bound === undefined ? {} : { bound }),
    how: 'Groups of folders that import each other, directly or through others. Imports of types count.',
  };
}

function countStatements(lib: readonly SourceFile[]): readonly ShapeRow[] {
  const of = (isCounted: (statement: ESTree.Statement | ESTree.ModuleDeclaration) => boolean) =>
    lib.flatMap(({ text, program }) => program.body.filter(isCounted).map(({ start, end }) => text.slice(start, end)));
  const imports = of(({ type }) => type === 'ImportDeclaration');
  return [
    {
      what: 'Exports of `lib`',
      count: of(({ type }) => type.startsWith('Export')).length,
      bound: 950,
      how: 'Statements that begin with `export`, without the example packs.',
    },
    {
      what: 'Lines of imports of `lib`',
      count: imports.reduce((sum, statement) => sum + statement.split('\n').length, 0),
      bound: 1_900,
      how: `Of the ${imports.length.toLocaleString('en')} \`import\` statements.`,
    },
  ];
}

/** The table in Markdown. A count above its bound is bold. */
export function formatShape(rows: readonly ShapeRow[]): string {
  const format = (number: number | undefined) => number?.toLocaleString('en') ?? '';
  const lines = rows.map(({ what, count, detail, bound, how }) => {
    const isOver = bound !== undefined && count > bound;
    const shown = isOver ? `**${format(count)}**` : format(count);
    return `| ${what} | ${shown}${detail ? ` (${detail})` : ''} | ${format(bound)} | ${how} |`;
  });
  return `| Counted | Count | Bound | How |\n|---|---:|---:|---|\n${lines.join('\n')}\n`;
}
