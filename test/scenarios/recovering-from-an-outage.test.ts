import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { type Azurite, startAzurite } from '../../local/instance/azurite.ts';
import { signToken } from '../../local/instance/identity-provider.ts';
import { type Product, startProduct } from '../../local/instance/start-product.ts';
import { chooseFixedPorts } from '../fixed-ports.ts';
import { deployedApp as testApp } from '../fixtures/deployed-app.ts';
import { storageAccounts } from '../kit/storage.ts';
import { startLoad } from '../load.ts';
import { IS_EVERY_POINT } from '../points.ts';
import { countTried } from '../tried-faults.ts';
import { rowsOf } from '../world.ts';

const OUTAGE_SECONDS = 90;
const LOAD_SECONDS = IS_EVERY_POINT ? 8 : 2;
/** The longest delay that the outage can cause, plus the delay of the reminder, plus the work. */
const AGREED_WITHIN_SECONDS = 300;

const stops: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

test('a storage outage of 90 seconds under load poisons no message and loses no write', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-outage-'));
  stops.push(() => rm(folder, { recursive: true, force: true }));
  const account = { name: 'outage', key: randomBytes(64).toString('base64') };
  const ports = await chooseFixedPorts();
  const emulator = { folder: join(folder, 'azurite'), accounts: [account], ports } as const;
  let azurite: Azurite = await startAzurite(emulator);
  stops.push(() => azurite.stop());
  const connectionString = azurite.connectionString();
  const product: Product = await startProduct({
    app: testApp,
    port: 0,
    data: join(folder, 'data'),
    func: false,
    storage: { connectionString },
  });
  stops.push(() => product.stop());
  const { issuer, audience } = product.instance;
  const token = await signToken({ folder: join(folder, 'data'), issuer, audience, role: 'hr' });
  const statuses = new Map<number, number>();
  const load = startLoad(async (method, path, body) => {
    const sent = body ? { body: JSON.stringify(body) } : {};
    const response = await fetch(`${product.url}/api/${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...sent,
    });
    await response.arrayBuffer();
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    return response.status;
  });
  await sleep(LOAD_SECONDS * 1_000);
  await expect.poll(() => load.acknowledged).toBeGreaterThan(10);

  await azurite.stop();
  await sleep(OUTAGE_SECONDS * 1_000);
  azurite = await startAzurite(emulator);
  const since = Date.now();
  await sleep(LOAD_SECONDS * 1_000);
  await load.stop();

  const storage = storageAccounts.openStorage({ connectionString });
  await countTried({ what: 'Storage unavailable for 90 seconds under load' }, async () => {
    const seconds = await load.agreed(storage, { since, withinSeconds: AGREED_WITHIN_SECONDS });
    console.log(
      `${load.acknowledged} acknowledged, answers ${JSON.stringify([...statuses])}, agreed ${seconds.toFixed(0)} s after the outage`,
    );
    expect(await rowsOf(storage, 'poison')).toEqual([]);
    for (const name of ['index-changes-poison', 'transfers-poison']) {
      const poison = storage.queue(name);
      if (await poison.exists()) expect((await poison.getProperties()).approximateMessagesCount).toBe(0);
    }
  });
  expect(statuses.get(503)).toBeGreaterThan(0);
}, 900_000);
