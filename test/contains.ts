/**
 * True if the value occurs. Digits must stand alone, because any may occur in an ETag or a random id. A number at the end of a
 * value must be whole: `Zoffice100` is another office than `Zoffice10`.
 */
export function contains(text: string, value: string): boolean {
  if (/^\d+$/.test(value)) return new RegExp(`(?<![0-9a-zA-Z.])${value}(?![0-9a-zA-Z])`).test(text);
  const rests = text.split(value).slice(1);
  return rests.some((rest) => !/\d$/.test(value) || !/^\d/.test(rest));
}
