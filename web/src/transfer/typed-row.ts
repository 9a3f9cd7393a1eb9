import type { Entity, Values } from '../api/model.ts';
import { parseDecimal } from '../forms/decimal.ts';
import { unescapeFormula } from './csv.ts';

const NUMBERS = ['Int32', 'Int64', 'Double'];

/** The values of the cells of a CSV row, by the types of the model. An empty cell has no value. */
export function toTypedRow(entity: Entity, cells: Readonly<Record<string, string>>): Values {
  const typed = Object.entries(cells).flatMap(([field, text]) => {
    const type = entity.fields[field]?.type ?? 'String';
    const isEmpty = (NUMBERS.includes(type) ? text.trim() : text) === '';
    return isEmpty ? [] : [[field, toValue(type, unescapeFormula(text))] as const];
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
  return NUMBERS.includes(type) ? (parseDecimal(text, type !== 'Double') ?? text) : text;
}
