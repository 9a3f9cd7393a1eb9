/** No part of a longer character of UTF-8. */
export const LINE_FEED = 0x0a;

/** Decodes UTF-8, without a byte order mark. Throws for other bytes, which a lenient decoder would replace and an import would store. */
export async function* readUtf8(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let line = 1;
  for await (const chunk of chunks) {
    let text = '';
    for (let start = 0; start < chunk.length; ) {
      const end = chunk.indexOf(LINE_FEED, start) + 1 || chunk.length;
      text += decodeUtf8(chunk.subarray(start, end), line, { decoder, stream: true });
      if (chunk[end - 1] === LINE_FEED) line += 1;
      start = end;
    }
    yield text;
  }
  yield decodeUtf8(new Uint8Array(), line, { decoder, stream: false });
}

/** Decodes a part of a line of a file. */
export function decodeUtf8(
  bytes: Uint8Array,
  line: number,
  { decoder = new TextDecoder('utf-8', { fatal: true }), stream = false } = {},
): string {
  try {
    return decoder.decode(bytes, { stream });
  } catch {
    throw new Error(`Line ${line} of the file is not UTF-8: save the file as UTF-8 and import it again.`);
  }
}
