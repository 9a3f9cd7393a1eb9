/** A mutant after its run, with the path of its file. */
interface Tested {
  readonly path: string;
  readonly status: string;
  readonly statusReason?: string | undefined;
}

/** A loop that a mutant made endless: Stryker counts the passes. */
const ENDLESS = /^Hit limit reached/;

/** A table of the scores by room: how many of 100 mutants make a test fail. */
export function tableOfScores(all: readonly Tested[]): string {
  // Those that no sample has, and those that run only while a module loads.
  const run = all.filter(({ status }) => status !== 'CompileError' && status !== 'Ignored');
  const rooms = [...Map.groupBy(run, ({ path }) => /^lib\/(?:engine\/[\w-]+(?=\/)|\w+)/.exec(path)?.[0] ?? path)];
  const rows = rooms.toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([room, tested]) => rowOf(room, tested));
  return [
    '| Room | Files | Mutants | Noticed | Survived | In no test | Out of time | Score |',
    '|---|---:|---:|---:|---:|---:|---:|---:|',
    ...rows,
    rowOf('All', run),
  ].join('\n');
}

function rowOf(room: string, tested: readonly Tested[]): string {
  const count = (isCounted: (one: Tested) => boolean) => tested.filter(isCounted).length;
  const isEndless = ({ statusReason = '' }: Tested) => ENDLESS.test(statusReason);
  const noticed = count((one) => one.status === 'Killed' || isEndless(one));
  const survived = count(({ status }) => status === 'Survived');
  const unreached = count(({ status }) => status === 'NoCoverage');
  // On a busy machine, nothing follows from it.
  const late = count((one) => one.status === 'Timeout' && !isEndless(one));
  const score = Math.round((100 * noticed) / Math.max(1, noticed + survived + unreached));
  const cells = [room, new Set(tested.map(({ path }) => path)).size, tested.length, noticed, survived, unreached, late];
  return `| ${cells.join(' | ')} | ${score} % |`;
}
