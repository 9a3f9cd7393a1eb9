import type { Browser } from 'playwright-core';
import { afterAll, beforeEach } from 'vitest';
import { launchBrowser } from './browser.ts';

/** Launches a browser for a test file, whose tests are skipped without one. Returns how a test gets it. */
export async function useBrowser(): Promise<() => Browser> {
  const browser = await launchBrowser();
  beforeEach(({ skip }) => {
    if (typeof browser === 'string') skip(browser);
  });
  afterAll(async () => {
    if (typeof browser !== 'string') await browser.close();
  });
  return () => {
    if (typeof browser === 'string') throw new Error(browser);
    return browser;
  };
}
