/** Saves text as a file of the user. */
export function saveFile(name: string, parts: readonly string[], type: string): void {
  const url = URL.createObjectURL(new Blob([...parts], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser reads the bytes after the click.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

export function toNdjson(values: readonly unknown[]): string {
  return values.map((each) => `${JSON.stringify(each)}\n`).join('');
}
