import { mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Locator, Page, Request, Route } from 'playwright-core';
import { beforeEach, expect } from 'vitest';
import type { LocalApp } from '../local/instance/local-app.ts';
import { IS_EVERY_POINT, sampleItems } from './points.ts';
import { type Product, useProduct } from './product.ts';
import { useBrowser } from './use-browser.ts';

/** Git ignores it. A run with POINTS=all writes the pictures for a person to look at. */
const SCREENSHOTS = fileURLToPath(new URL('../artefacts/console', import.meta.url));
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const WIDTHS = { desktop: 1280, phone: 375 };

export interface ConsoleHarness {
  readonly product: Product;
  /** Opens a page of the console, such as `#/entities/employees`, for a user with this role. */
  open(hash: string, role: string | readonly string[], email?: string): Promise<Page>;
}

/** The app with the console and a browser, for a whole test file. No page may write to the console of the browser. */
export async function useConsole(
  url: string,
  { app, product = useProduct(url, app ? { app } : {}) }: { readonly app?: LocalApp; readonly product?: Product } = {},
): Promise<ConsoleHarness> {
  const browser = await useBrowser();
  const complaints: string[] = [];
  beforeEach(() => {
    complaints.length = 0;
    return async () => {
      const contexts = browser().contexts();
      await Promise.all(contexts.map((context) => context.close()));
      expect(complaints, 'the console of the browser').toEqual([]);
    };
  });
  return {
    product,
    async open(hash, role, email) {
      const context = await browser().newContext({
        // The packaged browser takes an invalid language from the environment of a container.
        locale: 'en-US',
        viewport: { width: WIDTHS.desktop, height: 800 },
        // A color that is still changing can have too little contrast.
        reducedMotion: 'reduce',
      });
      const page = await context.newPage();
      page.on('console', (message) => {
        // The browser logs each response with an error status, also an expected one: 503 is that of a field that cannot be read.
        if (!/^Failed to load resource: .* status of (4\d\d|503)/.test(message.text())) complaints.push(message.text());
      });
      page.on('pageerror', (error) => complaints.push(String(error)));
      const session = { token: await product.token(role, email), expiresAt: Date.now() + 3_600_000 };
      await page.addInitScript((text) => sessionStorage.setItem('rowkey-session', text), JSON.stringify(session));
      await page.goto(new URL(`/console/${hash}`, product.url).href);
      await page.locator('main h1').waitFor();
      return page;
    },
  };
}

/** Records the texts that the pages draw on a canvas, such as those of the axes of a chart. Call it before the page is loaded. */
export async function recordDrawnTexts(page: Page): Promise<() => Promise<string[]>> {
  await page.addInitScript(`{
    const draw = CanvasRenderingContext2D.prototype.fillText;
    globalThis.drawnTexts = [];
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
      drawnTexts.push(String(text));
      return draw.call(this, text, ...rest);
    };
  }`);
  return () => page.evaluate('drawnTexts');
}

interface TestFile {
  readonly name: string;
  readonly mimeType: string;
  readonly buffer: Buffer;
}

/** Opens a part of a page. A key does it, because what loads above moves the part, also while a mouse button is pressed. */
export async function openPart(place: Page | Locator, title: string): Promise<void> {
  const summary = place.locator('summary', { hasText: title });
  // A page that has just come takes the focus to its heading: Enter may go there.
  await expect
    .poll(
      async () => {
        const isOpen = () => summary.evaluate((element) => element.parentElement?.hasAttribute('open'));
        if (!(await isOpen())) await summary.press('Enter');
        return isOpen();
      },
      { timeout: 30_000 },
    )
    .toBe(true);
}

/** Drops a file, as a user drags it from another window. */
export async function dropFile(target: Locator, { name, mimeType, buffer }: TestFile): Promise<void> {
  const bytes = JSON.stringify([...buffer]);
  const file = `new File([new Uint8Array(${bytes})], ${JSON.stringify(name)}, { type: '${mimeType}' })`;
  const dataTransfer = await target
    .page()
    .evaluateHandle(`(() => { const data = new DataTransfer(); data.items.add(${file}); return data; })()`);
  await target.dispatchEvent('dragover', { dataTransfer });
  await expect.poll(() => target.getAttribute('class')).toContain('over');
  await target.dispatchEvent('drop', { dataTransfer });
}

/** Holds the first request that matches: `held` resolves when the page has sent it, and `release` lets it go on. */
export async function holdFirst(page: Page, matches: (request: Request) => boolean) {
  const held = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  let first: Route | undefined;
  await page.route('**', async (route) => {
    if (first || !matches(route.request())) return route.fallback();
    first = route;
    held.resolve();
    await released.promise;
    // The page may have canceled the request meanwhile.
    await route.fallback().catch(() => undefined);
  });
  return { held: held.promise, release: async () => released.resolve() };
}

/**
 * Checks that a page fits at both widths, and checks its accessibility at both widths, light and dark, but for some rules of axe.
 * A usual run checks the accessibility of one of the four; a run with POINTS=all also takes a picture of each.
 */
export async function lookAt(page: Page, name: string, { except = [] as readonly string[] } = {}): Promise<void> {
  if (IS_EVERY_POINT) await mkdir(SCREENSHOTS, { recursive: true });
  const looks = Object.keys(WIDTHS).flatMap((device) => [`${device}-light`, `${device}-dark`]);
  const sample = sampleItems(looks, name);
  const violations: string[] = [];
  for (const [device, width] of Object.entries(WIDTHS)) {
    await page.setViewportSize({ width, height: 800 });
    for (const colorScheme of ['light', 'dark'] as const) {
      if (!sample.includes(`${device}-${colorScheme}`)) continue;
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      if (IS_EVERY_POINT) await page.screenshot({ path: join(SCREENSHOTS, `${name}-${device}-${colorScheme}.png`) });
      const found = await findViolations(page, except);
      violations.push(...found.map((one) => `${name}, ${device}, ${colorScheme}: ${one}`));
    }
    // A chart gets its new width after the page.
    const isWider = () => page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth');
    const message = `${name}, ${device}: the page scrolls sideways`;
    await expect.poll(isWider, { message }).toBe(false);
  }
  await page.setViewportSize({ width: WIDTHS.desktop, height: 800 });
  await page.emulateMedia({ colorScheme: 'light' });
  expect(violations).toEqual([]);
}

/** The violations that axe finds, with their elements. */
async function findViolations(page: Page, except: readonly string[]): Promise<readonly string[]> {
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(await readFile(AXE, 'utf8'));
  const rules = Object.fromEntries(except.map((rule) => [rule, { enabled: false }]));
  return page.evaluate(`axe.run({ rules: ${JSON.stringify(rules)} }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ html, any }) => id + ' ' + html.slice(0, 200) + ' ' + (any[0]?.message ?? ''))))`);
}
