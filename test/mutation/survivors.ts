import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { wereRun } from './scores.ts';

/**
 * Mutants that no test notices, each with the reason why it stays. `npm run mutation -- --write` lists them, and a person adds
 * the reasons.
 */

const ROOT = join(import.meta.dirname, '../..');
const LIST = join(import.meta.dirname, 'survivors.yaml');

/** A mutant by its text, which an edit elsewhere in the file does not change. */
interface Mutant {
  readonly file: string;
  /** The line of the code where the mutant begins. */
  readonly line: string;
  /** The line with the mutant, or what the mutant leaves of several lines. */
  readonly becomes: string;
}
interface Survivor extends Mutant {
  readonly why: string;
}

interface Tested {
  readonly path: string;
  readonly status: string;
  readonly location: Readonly<Record<'start' | 'end', { readonly line: number; readonly column: number }>>;
  readonly replacement?: string | undefined;
}

export function readSurvivors(): Survivor[] {
  return parse(readFileSync(LIST, 'utf8'));
}

/** True if the line of a mutant is in the code yet. */
export function isInCode({ file, line }: Mutant): boolean {
  return existsSync(join(ROOT, file)) && linesOf(file).some((one) => one.trim() === line);
}

/** The mutants of a run that no test has noticed and that the list lacks. */
export function findUnlisted(all: readonly Tested[]): Mutant[] {
  const known = new Set(readSurvivors().map(idOf));
  return survivorsOf(all).filter((survivor) => !known.has(idOf(survivor)));
}

/** Writes the list: with the mutants of a run that no test has noticed, and without those that one has, or whose line is gone. */
export function writeSurvivors(all: readonly Tested[]): void {
  const survived = new Set(survivorsOf(all).map(idOf));
  const noticed = new Set(
    wereRun(all)
      .map(toMutant)
      .map(idOf)
      .filter((id) => !survived.has(id)),
  );
  const kept = readSurvivors().filter((survivor) => isInCode(survivor) && !noticed.has(idOf(survivor)));
  const list = [...kept, ...findUnlisted(all).map((survivor) => ({ ...survivor, why: '' }))];
  const [comments = ''] = /^(?:#.*\n)*/.exec(readFileSync(LIST, 'utf8')) ?? [];
  writeFileSync(
    LIST,
    comments +
      stringify(
        list.sort((one, other) => (one.file < other.file ? -1 : 1)),
        { lineWidth: 0 },
      ),
  );
}

const survivorsOf = (all: readonly Tested[]) =>
  wereRun(all)
    .filter(({ status }) => status === 'Survived' || status === 'NoCoverage')
    .map(toMutant);
const idOf = ({ file, line, becomes }: Mutant) => JSON.stringify([file, line, becomes]);
const linesOf = (file: string) => readFileSync(join(ROOT, file), 'utf8').split('\n');

function toMutant({ path, location: { start, end }, replacement = '' }: Tested): Mutant {
  const lines = linesOf(path);
  const [first = '', last = ''] = [lines[start.line - 1], lines[end.line - 1]];
  const becomes = first.slice(0, start.column - 1) + replacement + last.slice(end.column - 1);
  return { file: path, line: first.trim(), becomes: becomes.replaceAll(/\s+/g, ' ').trim() };
}
