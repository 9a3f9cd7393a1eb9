/** Splits a text into parts of at most `length` UTF-16 code units. Never splits a surrogate pair. */
export function splitText(text: string, length: number): string[] {
  const parts: string[] = [];
  for (let start = 0; start < text.length; ) {
    const end = start + length;
    const isCut = /[\ud800-\udbff]/.test(text[end - 1] ?? '') && end < text.length;
    parts.push(text.slice(start, isCut ? end - 1 : end));
    start = isCut ? end - 1 : end;
  }
  return parts;
}
