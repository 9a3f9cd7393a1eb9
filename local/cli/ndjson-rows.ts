import type { Entity } from '../../lib/define/entity.ts';
import type { Values } from '../../lib/define/values.ts';
import type { ImportEvents, ImportRow } from './csv-rows.ts';
import { readUtf8 } from './read-utf8.ts';

/** Reads the rows of a stream that has a JSON object on each line. Throws if the bytes are not UTF-8. */
export async function* readNdjson(
  _entity: Entity,
  input: AsyncIterable<Uint8Array>,
  { onRow, onBad }: ImportEvents,
): AsyncGenerator<ImportRow> {
  let line = 0;
  for await (const text of readLines(input)) {
    line += 1;
    if (text.trim() === '') continue;
    const values = toValues(text);
    if (values === undefined) {
      onBad(line, 'the line is not a JSON object');
      continue;
    }
    onRow();
    yield { line, values };
  }
}

/** Replaces node:readline, which loses the errors of its input and also breaks lines at U+2028, which JSON allows in a string. */
async function* readLines(input: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of readUtf8(input)) {
    const lines = `${rest}${chunk}`.split(/\r?\n/);
    rest = lines.pop() ?? '';
    yield* lines;
  }
  yield rest;
}

function toValues(text: string): Values | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? { ...parsed } : undefined;
  } catch {
    return undefined;
  }
}
