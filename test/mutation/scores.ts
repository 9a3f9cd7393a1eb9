/** A mutant after its run, with the path of its file. */
interface Tested {
  readonly path: string;
  readonly status: string;
  readonly statusReason?: string | undefined;
}

/** A loop that a mutant made endless: Stryker counts the passes. */
const ENDLESS = /^Hit limit reached/;

/** The mutants that were run: neither those outside of the sample, nor those that run only while a module loads. */
export const wereRun = <One extends Pick<Tested, 'status'>>(all: readonly One[]) =>
  all.filter(({ status }) => status !== 'CompileError' && status !== 'Ignored');

/** A table of the scores by room: how many of 100 mutants make a test fail. */
export function tableOfScores(all: readonly Tested[]): string {
  const run = wereRun(all);
  const rooms = [...Map.groupBy(run, ({ path }) => /^lib\/(?:engine\/[\w-]+(?=\/)|\w+)/.exec(path)?.[0] ?? path)];
  const rows = rooms.toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([room, tested]) => rowOf(room, tested));
  return [
    '| Room | Files | Mutants | Noticed | Survived | In no test | Out of time | Score |',
    '|---|---:|---:|---:|---:|---:|---:|---:|',
    ...rows,
    rowOf('All', run),
  ].join('\n');
}

/** The scores below `least`, of `lib/engine` and `lib/features` as a whole, as lines for people. */
export function scoresBelow(least: number, all: readonly Tested[]): string[] {
  return [...Map.groupBy(wereRun(all), ({ path }) => /^lib\/\w+/.exec(path)?.[0] ?? path)]
    .map(([room, tested]) => ({ room, score: countsOf(tested).score }))
    .filter(({ score }) => score < least)
    .map(({ room, score }) => `The score of ${room} is ${score} %; at least ${least} % is required.`);
}

function rowOf(room: string, tested: readonly Tested[]): string {
  const { noticed, survived, unreached, late, score } = countsOf(tested);
  const cells = [room, new Set(tested.map(({ path }) => path)).size, tested.length, noticed, survived, unreached, late];
  return `| ${cells.join(' | ')} | ${score} % |`;
}

function countsOf(tested: readonly Tested[]) {
  const count = (isCounted: (one: Tested) => boolean) => tested.filter(isCounted).length;
  const isEndless = ({ statusReason = '' }: Tested) => ENDLESS.test(statusReason);
  const noticed = count((one) => one.status === 'Killed' || isEndless(one));
  const survived = count(({ status }) => status === 'Survived');
  const unreached = count(({ status }) => status === 'NoCoverage');
  // On a busy machine, nothing follows from it.
  const late = count((one) => one.status === 'Timeout' && !isEndless(one));
  const score = Math.round((100 * noticed) / Math.max(1, noticed + survived + unreached));
  return { noticed, survived, unreached, late, score };
}
