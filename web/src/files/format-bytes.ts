const UNITS = ['bytes', 'kB', 'MB', 'GB'];

/** `1.5 MB`. */
export function formatBytes(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const value = bytes / 1_000 ** power;
  return `${value.toLocaleString('en', { maximumFractionDigits: 1 })} ${UNITS[power]}`;
}
