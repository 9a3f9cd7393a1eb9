import { execFileSync } from 'node:child_process';
import { createReadStream, createWriteStream, existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync, createBrotliDecompress } from 'node:zlib';
import { type Browser, chromium } from 'playwright-core';
import { PATIENCE_MS } from './patience.ts';

const PACKAGE = fileURLToPath(new URL('..', import.meta.resolve('@sparticuz/chromium')));
/** Only flags that reduce background traffic. The arguments that the package recommends turn off origin checks. */
const ARGS = [
  '--disable-sync',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
];
const IS_PACKAGED = process.platform === 'linux' && process.arch === 'x64';

/**
 * Launches the packaged Chromium on Linux x64, where it needs no other software, and the installed Google Chrome
 * elsewhere. Returns a message if Google Chrome is missing.
 */
export async function launchBrowser(): Promise<Browser | string> {
  if (IS_PACKAGED)
    return chromium
      .launch({ ...(await unpacked()), args: ARGS, chromiumSandbox: false })
      .then(withPatience, (cause: Error) => {
        throw new Error('The packaged Chromium does not start on this machine.', { cause });
      });
  return chromium.launch({ channel: 'chrome', args: ARGS }).then(withPatience, (error: Error) => {
    if (!/is not found/.test(error.message)) throw error;
    return 'Google Chrome has to be installed: the packaged Chromium is for Linux on x64 only.';
  });
}

/** Lets pages wait for an element as long as tests wait for other events. The default is half a minute. */
function withPatience(browser: Browser): Browser {
  const newContext = browser.newContext.bind(browser);
  return Object.assign(browser, {
    async newContext(...options: Parameters<Browser['newContext']>) {
      const context = await newContext(...options);
      context.setDefaultTimeout(PATIENCE_MS);
      return context;
    },
  });
}

/** The package contains a compressed browser, which is unpacked once per version of the package. */
async function unpacked() {
  const folder = join(PACKAGE, 'unpacked');
  if (!existsSync(folder)) {
    // A rename is atomic, so that concurrent runs never find a partial file.
    const part = await mkdtemp(`${folder}-`);
    const program = createWriteStream(join(part, 'chromium'), { mode: 0o755 });
    await pipeline(createReadStream(join(PACKAGE, 'bin/chromium.br')), createBrotliDecompress(), program);
    const libraries = brotliDecompressSync(readFileSync(join(PACKAGE, 'bin/al2023.tar.br')));
    execFileSync('tar', ['-x', '-C', part], { input: libraries });
    await rename(part, folder).catch(() => rm(part, { recursive: true }));
  }
  const env = { ...process.env, LD_LIBRARY_PATH: join(folder, 'lib') };
  return { executablePath: join(folder, 'chromium'), env };
}
