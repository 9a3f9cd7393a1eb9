import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/**
 * Measures how long the compiler takes for models of many entities and for calls of their stores, and writes the figures with their bounds
 * into the documentation. Instantiations do not depend on the machine. Ends with 1 if a bound is exceeded.
 */

const PAGE = 'docs/internals/performance.md';
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const OUT = join(ROOT, 'out');
const execute = promisify(execFile);

/** The seconds of the check alone, on two cores, and the thousands of instantiations. */
const BOUNDS = [
  { entities: 1, seconds: 2, thousands: 500 },
  { entities: 100, seconds: 4, thousands: 2_000 },
  { entities: 500, seconds: 20, thousands: 20_000 },
];

interface TypeCheck {
  readonly entities: number;
  readonly seconds: number;
  readonly thousands: number;
  readonly megabytes: number;
}

/** A file with a model of entities that use most options, each with a reference to the one before it, and calls of each entity's store. */
function generateModel(entities: number): string {
  const names = Array.from({ length: entities }, (_, number) => `things${number}`);
  const declarations = names.map((name, number) => {
    const before = names[number - 1];
    const reference = before ? `references: { other: { to: ${before}, by: 'id', onDelete: 'report' } },` : '';
    return `const ${name} = defineEntity('${name}', {
  schema: z.object({
    place: z.string(), id: z.string(), name: z.string(), email: z.email().optional(), day: z.iso.date().optional(),
    size: z.number().optional(), note: z.string().optional(), secret: z.string().optional(), other: z.string().optional(),
    title: z.string().optional(), changedOn: z.iso.date().optional(),
  }),
  table: '${name}',
  key: { partition: '{place}', row: '{id}' },
  indexes: {
    email: interPartitionIndex({ table: '${name}byemail', partition: '{email#}', row: '{email}', unique: true }),
    name: intraPartitionIndex({ row: 'name_{name}_{id}' }),
    day: interPartitionIndex({ table: '${name}byday', partition: '{day}', row: '{place}_{id}', copies: ['name'], appends: true }),
  },
  totals: { bySize: total({ table: '${name}totals', partition: '{place}', row: '{name}', sum: ['size'] }) },
  encrypted: ['secret'],
  large: ['note'],
  derived: { title: ({ name }) => String(name) },
  expiry: { days: 30, clock: 'changedOn' },
  ${reference}
  access: { read: ['reader'], write: ['writer'], restricted: { secret: ['writer'] } },
});`;
  });
  const calls = names.map(
    (name) => `void store.${name}.create({ place: 'a', id: '1', name: 'b' });
void store.${name}.get({ place: 'a', id: '1' }, { select: ['name'] });
void store.${name}.by.name.range({ place: 'a' });
void store.${name}.by.email({ email: 'a@b.c' });
void store.${name}.totals.bySize.get({ place: 'a', name: 'b' });`,
  );
  return `import { z } from 'zod';
import { type Store, defineEntity, defineModel, interPartitionIndex, intraPartitionIndex, total } from '../../lib/index.ts';
${declarations.join('\n')}
const model = defineModel({ roles: ['reader', 'writer'], operatorRole: 'reader', entities: [${names.join(', ')}] });
declare const store: Store<typeof model.entities>;
${calls.join('\n')}
`;
}

async function measureTypeCheck(entities: number): Promise<TypeCheck> {
  await mkdir(OUT, { recursive: true });
  const folder = await mkdtemp(join(OUT, 'types-'));
  try {
    await writeFile(join(folder, 'model.ts'), generateModel(entities));
    const config = { extends: '../../tsconfig.json', include: [], files: ['model.ts'], exclude: [] };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config));
    const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
    const { stdout } = await execute(process.execPath, [
      compiler,
      '-p',
      folder,
      '--checkers',
      '1',
      '--extendedDiagnostics',
    ]);
    const figure = (name: string) => Number(new RegExp(`^${name}:\\s+([\\d.]+)`, 'm').exec(stdout)?.[1]);
    return {
      entities,
      seconds: figure('Check time'),
      thousands: Math.ceil(figure('Instantiations') / 1_000),
      megabytes: Math.ceil(figure('Memory used') / 1_024),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The page with these figures between its marks. Throws if it has no marks. */
function withTypeChecks(page: string, checks: readonly TypeCheck[]): string {
  const marks = /(<!-- type check: .* -->\n)[\s\S]*?(<!-- \/type check -->)/;
  if (!marks.test(page)) throw new Error(`${PAGE} has no marks for the figures of the type check.`);
  const rows = checks.map(({ entities, seconds, thousands, megabytes }) => {
    const bound = BOUNDS.find((each) => each.entities === entities);
    const at = (figure: number, most = Number.NaN) => `${figure > most ? `**${figure}**` : figure} (${most})`;
    return `| ${entities} | ${at(seconds, bound?.seconds)} | ${at(thousands, bound?.thousands)} | ${megabytes} |`;
  });
  const table = [
    '| Entities | Seconds of the check | Thousands of instantiations | MB |',
    '|--:|--:|--:|--:|',
    ...rows,
  ];
  return page.replace(marks, `$1\n${table.join('\n')}\n\n$2`);
}

if (import.meta.main) {
  const checks: TypeCheck[] = [];
  for (const { entities } of BOUNDS) checks.push(await measureTypeCheck(entities));
  console.table(checks);
  await writeFile(PAGE, withTypeChecks(await readFile(PAGE, 'utf8'), checks));
  const isExceeded = BOUNDS.some(({ entities, seconds, thousands }) =>
    checks.some((one) => one.entities === entities && (one.seconds > seconds || one.thousands > thousands)),
  );
  if (isExceeded) process.exitCode = 1;
}
