import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deployedApp } from '../local/instance/deployed-app.ts';
import { signToken } from '../local/instance/identity-provider.ts';
import { startProduct } from '../local/instance/start-product.ts';
import { loadSamples } from '../local/packs/load-samples.ts';
import { requirePack } from '../local/packs/remove-packs.ts';
import { launchBrowser } from './browser.ts';

/** `npm run picture` writes the picture of the README: the console, with the sample data, in the browser of the tests. */

const PICTURE = fileURLToPath(new URL('../docs/console.png', import.meta.url));
const PAGE = '/console/#/entities/employees/rows?key.department=Sales';

await requirePack('directory', 'npm run picture');
const browser = await launchBrowser();
if (typeof browser === 'string') throw new Error(browser);
const folder = await mkdtemp(join(tmpdir(), 'rowkey-picture-'));
const product = await startProduct({ app: deployedApp, port: 0, data: folder });
try {
  const { url, instance } = product;
  const { issuer, audience } = instance;
  const role = deployedApp.model.roles;
  const sign = (email?: string) => signToken({ folder, issuer, audience, role, ...(email ? { email } : {}) });
  await loadSamples({ folder, url, token: await sign() });
  const page = await browser.newPage({ viewport: { width: 1440, height: 1_080 }, deviceScaleFactor: 1 });
  const session = { token: await sign('jonesj@contoso.com'), expiresAt: Date.now() + 3_600_000 };
  await page.addInitScript((text) => sessionStorage.setItem('rowkey-session', text), JSON.stringify(session));
  await page.goto(new URL(PAGE, url).href);
  await page.getByRole('link', { name: 'Sales / 000123' }).click();
  await page.getByText('Where it is stored').click();
  await page.getByRole('region', { name: 'Rows and index entries' }).waitFor();
  await page.evaluate('scrollTo(0, 0)');
  await page.screenshot({ path: PICTURE, animations: 'disabled' });
  console.log(`The picture is in ${PICTURE}.`);
} finally {
  await browser.close();
  await product.stop();
  await rm(folder, { recursive: true, force: true });
}
