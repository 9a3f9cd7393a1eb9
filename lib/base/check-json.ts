import { RowkeyError } from './errors.ts';
import { findNotJson, type NotJson, sayNotJson } from './json-value.ts';

/** A caller controls the names of members. */
const MAX_PATH_LENGTH = 100;

/** Throws `invalid-input`, which names the part that JSON cannot hold. `levels` is how deep the value may nest. */
export function checkJson(value: unknown, levels?: number): void {
  const found = findNotJson(value, levels);
  if (found) throw notJson(found);
}

/** The error for what `findNotJson` found. */
export function notJson({ path, accepted, got }: NotJson): RowkeyError {
  const text = path.join('.').toWellFormed();
  const field = text.length > MAX_PATH_LENGTH ? `${text.slice(0, MAX_PATH_LENGTH).toWellFormed()}…` : text;
  const subject = field === '' ? 'The body' : `"${field}"`;
  return new RowkeyError('invalid-input', `${subject} ${sayNotJson({ accepted, got })}.`, {
    ...(field === '' ? {} : { field }),
    accepted,
  });
}
