import type { Entity, Values } from '../api/model.ts';

/** Number() also accepts hexadecimal, Infinity and spaces. */
const DECIMAL = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;
const NUMBERS = ['Int32', 'Int64', 'Double'];

/** The values of the cells of a CSV row, by the types of the model. An empty cell has no value. */
export function toTypedRow(entity: Entity, cells: Readonly<Record<string, string>>): Values {
  const typed = Object.entries(cells).flatMap(([field, text]) => {
    const type = entity.fields[field]?.type ?? 'String';
    const isEmpty = (NUMBERS.includes(type) ? text.trim() : text) === '';
    return isEmpty ? [] : [[field, toValue(type, text)] as const];
  });
  return Object.fromEntries(typed);
}

/** Returns text that cannot be converted unchanged, so that the API reports the error. */
function toValue(type: string, text: string): unknown {
  if (type === 'Boolean') return text === 'true' ? true : text === 'false' ? false : text;
  if (type === 'Json') {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  if (!NUMBERS.includes(type) || !DECIMAL.test(text)) return text;
  return Number.isFinite(Number(text)) ? Number(text) : text;
}
