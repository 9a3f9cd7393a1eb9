import type { Step } from '../../local/walk/steps.ts';
import { WORDS } from '../../local/walk/values.ts';
import type { Chance } from './world/chance.ts';

/** Values that spell names of the engine and of JavaScript, paths, and what is at the edges of JSON. */
const ALPHABET = [
  '$owner',
  '__proto__',
  'constructor',
  'tombstone',
  'list',
  'claim',
  'total',
  't_all',
  'PartitionKey',
  'by',
  'batch',
  'null',
  'true',
  '0',
  '-0',
  '1e400',
  '{}',
  '[]',
  '""',
  '.',
  '..',
  '%2e%2e',
  '%2F',
  'a b',
  'a+b',
  '~',
  '_',
  '__',
  "it''s",
  'ﬀ',
  'İ',
  'é',
  '\u{1F600}',
];

/** Replaces some words of the walk by others: the same word everywhere, so that keys still collide. */
export function respell(steps: readonly Step[], chance: Chance): Step[] {
  const spelt = new Map(WORDS.flatMap((word) => (chance.isTrue(0.4) ? [[word, chance.pick(ALPHABET)] as const] : [])));
  const replace = (value: unknown): unknown => {
    if (typeof value === 'string') return spelt.get(value) ?? value;
    if (Array.isArray(value)) return value.map(replace);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, replace(one)]));
  };
  return steps.map((step) => ({
    ...step,
    ...Object.fromEntries(
      (['key', 'values', 'actions'] as const).flatMap((part) => (step[part] ? [[part, replace(step[part])]] : [])),
    ),
  }));
}
