import { baseValues } from './kit/base.ts';

/** Ids of moves: of an earlier release, and as a value with the id of this one. */
const MOVE_IDS = ['mwy512yl949b8d40', '!mmwy512yl949b8d40'];

/** Values that would spell a name of the engine in a key: the name, more than it, and what a separator of a template completes. */
function spell(name: string): readonly string[] {
  return [name, `${name}1`, `x${name}wide1`, name.replace(/[_-]$/, '')];
}

/** For each name of the engine, the values that would spell it. */
export const SPELLED_NAMES: readonly string[] = [
  ...new Set([
    ...baseValues.KEY_NAMES.flatMap(spell),
    ...baseValues.ENGINE_NAMES,
    ...[baseValues.FENCE_HEAD, baseValues.MARK_HEAD].flatMap((head) => MOVE_IDS.map((id) => head + id)),
  ]),
];
