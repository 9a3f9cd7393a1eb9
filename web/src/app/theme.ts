type Theme = 'auto' | 'light' | 'dark';

const KEY = 'rowkey-theme';
export const THEMES: readonly Theme[] = ['auto', 'light', 'dark'];

export function readTheme(): Theme {
  const stored = localStorage.getItem(KEY);
  return THEMES.find((theme) => theme === stored) ?? 'auto';
}

export function storeTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  applyTheme();
}

/** `auto` follows the setting of the device. */
export function applyTheme(): void {
  const theme = readTheme();
  const { dataset } = document.documentElement;
  if (theme === 'auto') delete dataset.theme;
  else dataset.theme = theme;
}
