/** True if the value occurs. Digits must stand alone, because any may occur in an ETag or a random id. */
export function contains(text: string, value: string): boolean {
  if (!text.includes(value)) return false;
  return !/^\d+$/.test(value) || new RegExp(`(?<![0-9a-z.])${value}(?![0-9a-z])`, 'i').test(text);
}
