import { parseJson } from '../../lib/base/parse-json.ts';
import type { Values } from '../../lib/base/values.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { type ImportEvents, type ImportRow, NOT_JSON } from './csv-rows.ts';
import { maxRowBytes } from './max-row-bytes.ts';
import { decodeUtf8, LINE_FEED } from './read-utf8.ts';

/** Reads the rows of a stream that has a JSON object on each line. Throws if the bytes are not UTF-8. */
export async function* readNdjson(
  entity: Entity,
  input: AsyncIterable<Uint8Array>,
  { onRow, onBad }: ImportEvents,
): AsyncGenerator<ImportRow> {
  const maxBytes = maxRowBytes(entity);
  let isFirst = true;
  for await (const { line, bytes } of readLines(input, maxBytes)) {
    if (bytes === undefined) {
      onBad(line, `the line has more than ${maxBytes} bytes`);
      continue;
    }
    const text = decodeUtf8(bytes, line);
    if (text.trim() === '') continue;
    if (isFirst && text.trimStart().startsWith('[')) throw new Error(NOT_JSON);
    isFirst = false;
    const values = toValues(text);
    if (values === undefined) {
      onBad(line, 'the line is not a JSON object');
      continue;
    }
    onRow();
    yield { line, values };
  }
}

/**
 * Splits bytes into lines. A line of more than `maxBytes` is yielded without its bytes as soon as it is too long, and not kept: a
 * small compressed file may have a line that does not fit into memory. Replaces node:readline, which keeps every line, loses the
 * errors of its input, and also breaks lines at U+2028, which JSON allows in a string.
 */
export async function* readLines(
  input: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<{ readonly line: number; readonly bytes: Uint8Array | undefined }> {
  let line = 1;
  let length = 0;
  let parts: Uint8Array[] = [];
  for await (const chunk of input) {
    for (let start = 0; start < chunk.length; ) {
      const feed = chunk.indexOf(LINE_FEED, start);
      const end = feed === -1 ? chunk.length : feed;
      const wasTooLong = length > maxBytes;
      length += end - start;
      if (length <= maxBytes) parts.push(chunk.subarray(start, end));
      else {
        parts = [];
        if (!wasTooLong) yield { line, bytes: undefined };
      }
      start = end + 1;
      if (feed === -1) continue;
      if (length <= maxBytes) yield { line, bytes: Buffer.concat(parts) };
      line += 1;
      length = 0;
      parts = [];
    }
  }
  if (length <= maxBytes) yield { line, bytes: Buffer.concat(parts) };
}

function toValues(text: string): Values | undefined {
  try {
    const parsed: unknown = parseJson(text);
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? { ...parsed } : undefined;
  } catch {
    return undefined;
  }
}
