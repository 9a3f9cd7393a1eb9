import { readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'vitest';
import { MUTATIONS, type Mutation } from './change-row.ts';
import type { Injection } from './injections-into.ts';
import type { Outcome } from './try-injection.ts';

/** The table of injections in the documentation: what is found, repaired and left to a person. */

const PAGE = 'docs/internals/consistency.md';
const [BEGIN, END] = ['<!-- injections: written by `npm run injections` -->\n', '<!-- /injections -->'];
const NOTHING = 'nothing follows';

const outcomes = new Map<string, Map<Mutation, Set<string>>>();
const counts = { injected: 0, repaired: 0, left: 0, nothing: 0, missed: 0 };

/** Adds the outcome of an injection to the cell of its kind. */
export function noteOutcome({ what, mutation }: Injection, { findings, isHarmful }: Outcome): void {
  const row = outcomes.get(what) ?? new Map<Mutation, Set<string>>();
  const cell = row.get(mutation) ?? new Set<string>();
  for (const { kind, repaired } of findings) cell.add(repaired ? `\`${kind}\`` : `**\`${kind}\`**`);
  if (findings.length === 0) cell.add(NOTHING);
  outcomes.set(what, row.set(mutation, cell));
  counts.injected += 1;
  if (findings.some(({ repaired }) => !repaired)) counts.left += 1;
  else if (findings.length > 0) counts.repaired += 1;
  else if (isHarmful) counts.missed += 1;
  else counts.nothing += 1;
}

/** Compares the table with the page, or writes it. A sample must be part of the table. */
export function comparePage(): void {
  const page = readFileSync(PAGE, 'utf8');
  const [before, rest = ''] = page.split(BEGIN);
  const [written = '', after] = rest.split(END);
  const table = `\n${formatCounts()}\n\n${formatTable()}\n`;
  if (process.env.EVERY === 'injections') writeFileSync(PAGE, `${before}${BEGIN}${table}${END}${after}`);
  else expect(notIn(written), `${PAGE} is stale: run npm run injections, and commit it`).toEqual([]);
}

function notIn(written: string): string[] {
  const lines = new Map(
    written
      .split('\n')
      .map((line) => line.slice(2, -2).split(' | '))
      .map(([what, ...cells]) => [what, cells]),
  );
  const isWritten = (what: string, mutation: Mutation, text: string) =>
    lines.get(what)?.[MUTATIONS.indexOf(mutation)]?.split(', ').includes(text);
  return [...outcomes].flatMap(([what, row]) =>
    [...row].flatMap(([mutation, cell]) =>
      [...cell].filter((text) => !isWritten(what, mutation, text)).map((text) => `${what}, ${mutation}: ${text}`),
    ),
  );
}

function formatCounts(): string {
  const { injected, repaired, left, nothing, missed } = counts;
  const found = repaired + left;
  return `${injected} changes: ${found} found (${repaired} repaired, ${left} left to a person), ${missed} missed, ${nothing} of which nothing follows.`;
}

function formatTable(): string {
  const cells = (row: ReadonlyMap<Mutation, ReadonlySet<string>>) =>
    MUTATIONS.map((mutation) => [...(row.get(mutation) ?? [])].sort().join(', ') || ' ');
  const rows = [...outcomes]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([what, row]) => [what, ...cells(row)]);
  const lines = [['What', ...MUTATIONS], ['---', ...MUTATIONS.map(() => '---')], ...rows];
  return `${lines.map((line) => `| ${line.join(' | ')} |`).join('\n')}\n`;
}
