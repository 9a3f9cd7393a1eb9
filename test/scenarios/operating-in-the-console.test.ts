import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { lookAt, useConsole } from '../console.ts';
import { testOperating } from '../console-flows/operating.ts';
import { storageSlots } from '../kit/storage.ts';

/** Operators work with the served console in a browser, on the tests' own model. */

const harness = await useConsole(import.meta.url);
const { product } = harness;
const operator = product.as('operator');
const everything = ['operator', 'hr', 'reader'];

const { open, failMessages } = testOperating(harness);

test.each([
  ['usage', 'Transactions by pattern', ['Transactions', 'Cost']],
  ['periods', 'Tables of periods', ['State']],
  ['grants', 'Identities without grants', ['Action']],
])('a phone shows the columns of the page %s that matter without scrolling', async (path, label, columns) => {
  const body = { subject: '0b4dbfd3-9b0f-4f5e-8f38-6f2f3f1f7d11' };
  expect((await operator('POST', '/api/operations/grants/revoke', { body })).status).toBeLessThan(300);
  const page = await open(path);
  await page.setViewportSize({ width: 375, height: 800 });
  const table = page.getByRole('region', { name: label });
  for (const name of columns) {
    const box = await table.getByRole('columnheader', { name, exact: true }).boundingBox();
    expect((box?.x ?? 0) + (box?.width ?? Number.NaN), name).toBeLessThanOrEqual(375);
  }
  await lookAt(page, `operators-${path}`);
});

test('a phone breaks no word of a pattern', async () => {
  const page = await open('queues');
  await page.route('**/api/operations/usage', async (route) => {
    const usage = await (await route.fetch()).json();
    const one = { operation: 'table POST', transactions: 12_345, dollars: 1.25 };
    const names = ['denormalization', 'inter-partition index', 'eventual transaction'];
    await route.fulfill({ json: { ...usage, patterns: names.map((pattern) => ({ ...one, pattern })) } });
  });
  await page.setViewportSize({ width: 375, height: 800 });
  await page.goto(`${product.url}/console/#/operators/usage`);
  await page.getByRole('rowheader', { name: 'denormalization' }).waitFor();
  const broken = await page.evaluate(`[...document.querySelectorAll('th[scope=row]')].flatMap((cell) => {
    const text = cell.firstChild;
    return [...text.data.matchAll(/[^ -]+/g)].filter(({ 0: word, index }) => {
      const range = document.createRange();
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      return range.getClientRects().length > 1;
    }).map(([word]) => word);
  })`);
  expect(broken).toEqual([]);
  const cost = await page.getByRole('columnheader', { name: 'Cost' }).boundingBox();
  expect((cost?.x ?? 0) + (cost?.width ?? Number.NaN)).toBeLessThanOrEqual(375);
  await lookAt(page, 'operators-usage-of-patterns');
});

test('finds the partition of a slot, with advice, and tells no key to an operator who reads no entity', async () => {
  for (let count = 0; count < 30; count += 1) await product.as('hr')('GET', '/api/employees/Operating');
  const page = await open('heat');
  const rows = page.getByRole('row').filter({ hasText: 'What to do' });
  const mine = rows.filter({ has: page.getByRole('rowheader', { name: /^Operating/ }) });
  await mine.first().waitFor();
  const slot = storageSlots.slotOf('Operating');
  await page.getByLabel('Table or slot').fill(slot);
  await expect.poll(() => rows.count()).toBe(await mine.count());
  await mine.first().getByText('What to do').click();
  await mine
    .first()
    .getByText(/maxAge|lookup|Spread/)
    .first()
    .waitFor();
  await lookAt(page, 'operators-heat-of-slot');
  // Rows that say nothing to the operator are left out, until one looks for a slot.
  const blind = await open('heat', ['operator']);
  await blind.getByText(/^\d+ partitions? of entities that your roles may not read, /).waitFor();
  await lookAt(blind, 'operators-heat-left-out');
  await blind.getByLabel('Table or slot').fill(slot);
  await blind.getByText('your roles may not see the key').first().waitFor();
  expect(await blind.getByText('Operating', { exact: true }).count()).toBe(0);
});

test('a hot partition says so, and a phone shows its numbers', async () => {
  const page = await open('queues');
  await page.route('**/api/operations/heat', async (route) => {
    const heat = await (await route.fetch()).json();
    const numbers = { load: 61_234.5, requests: 61_234.5, written: 30_000, throttled: 12.4, share: 0.62, isHot: true };
    const hot = { ...heat.items[0], ...numbers, partition: 'a-rather-long-key-'.repeat(6) };
    await route.fulfill({ json: { load: 98_000, items: [hot, ...heat.items] } });
  });
  await page.setViewportSize({ width: 375, height: 800 });
  await page.goto(`${product.url}/console/#/operators/heat`);
  const card = page.getByRole('row').filter({ hasText: '61,235' });
  await card.getByText('12', { exact: true }).waitFor();
  await card
    .getByText(/maxAge|lookup|Spread|queueParts|engine/)
    .first()
    .waitFor();
  await lookAt(page, 'operators-heat-hot');
});

test('says which indexes nobody has read, what each costs and what else it is for', async () => {
  const page = await open('queues');
  await page.route('**/api/operations/indexes', async (route) => {
    const { items } = await (await route.fetch()).json();
    const unread = { countedSince: '2026-01-02', lastReadOn: undefined, isUnread: true };
    await route.fulfill({
      json: { items: items.map((one: { index: string }) => (one.index === 'lastName' ? { ...one, ...unread } : one)) },
    });
  });
  await page.goto(`${product.url}/console/#/operators/indexes`);
  await page.getByText('Nobody has read 1 index for 35 days: employees.lastName.').waitFor();
  const [first, email] = [page.getByRole('row').nth(1), page.getByRole('row').filter({ hasText: 'emailCompanyWide' })];
  await first.getByText('never since 2026-01-02').waitFor();
  await email.getByText('unique values').waitFor();
  await email.getByText(/\d transaction/).waitFor();
  await lookAt(page, 'operators-indexes-unread');
});

const ACCOUNTS = {
  items: [
    { name: 'first', isAway: false, slots: 1366, layers: [], containers: ['audit'] },
    {
      name: 'second',
      isAway: false,
      slots: 2730,
      layers: [
        { name: 'tenant-42', slots: 4096 },
        { name: 'sales (former)', slots: 683 },
      ],
      containers: [],
    },
    { name: 'third', isAway: true, layers: [], containers: ['photos'] },
  ],
  moves: [
    { move: 'mwy512yl949b8d40', from: 'first', to: 'third', slots: 682, gone: 240, phase: 'handing over' },
    {
      move: 'mwy4zz3f407917fa',
      from: 'second',
      to: 'first',
      slots: 12,
      gone: 12,
      phase: 'gone',
      goneAt: '2026-01-02T03:04:05.000Z',
    },
  ],
  mover: {
    ...{
      isAlive: true,
      startedAt: '2026-01-02T03:04:05.000Z',
      saidAt: new Date().toISOString(),
      phase: 'handing over',
    },
    ...{
      secondsLeft: 42,
      rows: 1_234_567,
      rowsPerSecond: 8_900,
      written: 1_234_000,
      blobs: 17,
      slots: 240,
      pauseMilliseconds: 69,
    },
  },
  unowned: [] as string[],
  advice: [] as string[],
};

test('shows what each account owns and how far a move is, and how to end what a dead command has left', async () => {
  const page = await open('queues');
  let shown = ACCOUNTS;
  await page.route('**/api/operations/accounts', (route) => route.fulfill({ json: shown }));
  await page.goto(`${product.url}/console/#/operators/accounts`);
  await page.getByRole('row').filter({ hasText: 'third' }).getByText('does not respond').waitFor();
  await page.getByText('240 of 682 slots handed over').waitFor();
  await page.getByText('about 42 seconds left').waitFor();
  await page.getByText('tenant-42 and 683 slots of sales (former)').waitFor();
  await lookAt(page, 'operators-accounts-moving');

  const advice = [
    'To continue, run npm run accounts -- resume.',
    'To leave the other slots, run npm run accounts -- abort.',
  ];
  shown = { ...ACCOUNTS, mover: { ...ACCOUNTS.mover, isAlive: false }, unowned: ['07a', '0f1'], advice };
  await page.getByRole('button', { name: 'Refresh' }).click();
  await page.getByRole('alert').getByText('accounts -- resume').waitFor();
  await page.getByText('2 slots without an owner: 07a and 0f1.').waitFor();
  await page.getByText('up to some seconds before it stopped').waitFor();
  await lookAt(page, 'operators-accounts-stopped');
});

const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString();
const RESTORE = 'To restore to another place, run npm run restore -- --at <instant> --to <prefix>.';
const BACKUP = {
  days: 35,
  state: 'fine',
  restorableFrom: hoursAgo(35 * 24),
  restorableUntil: hoursAgo(0),
  snapshots: 35,
  last: { finishedAt: hoursAgo(5), tables: 12, rows: 1_234_567, bytes: 234_567_890, blobs: { count: 890, bytes: 1e9 } },
  waiting: { blobs: 0, bytes: 0 },
  drill: { at: hoursAgo(4), partitions: 8, rows: 4_321, differences: 0 },
  verification: { at: hoursAgo(30), problems: 0 },
  advice: [RESTORE],
};
const OVERDUE = {
  ...BACKUP,
  state: 'overdue',
  last: { ...BACKUP.last, finishedAt: hoursAgo(50) },
  waiting: { blobs: 2, bytes: 345_678, since: hoursAgo(3) },
  drill: { ...BACKUP.drill, differences: 2 },
  verification: { at: hoursAgo(30), problems: 1 },
  advice: ['To take one now, run npm run backup.', RESTORE],
};
const BEGINS = {
  ...{ days: 35, state: 'begins', snapshots: 0, waiting: BACKUP.waiting },
  advice: ['To take the snapshot now, run npm run backup.'],
};
const AWAY = { ...BEGINS, state: 'unknown', drill: BACKUP.drill, away: ['backup'], advice: [] };

test.each([
  ['fine', BACKUP, ['Everything can be restored.', '4,321 rows of 8 partitions restored, no difference', RESTORE]],
  [
    'overdue',
    OVERDUE,
    ['The last one ended 2 days ago', '345.7 kB not in the account of the backup yet', '2 differences', '1 problem'],
  ],
  ['begins', BEGINS, ['The backup begins when its first snapshot is complete.', BEGINS.advice[0] ?? '']],
  ['away', AWAY, ['The storage account backup does not respond.', '4,321 rows of 8 partitions restored']],
  ['off', undefined, ['The app keeps no backup']],
])('shows a backup that is %s, and what to do next', async (name, shown, texts) => {
  const page = await harness.open('', everything);
  await page.route('**/api/model', async (route) => {
    const model = await (await route.fetch()).json();
    await route.fulfill({ json: { ...model, ...(shown && { backup: { days: 35, roles: ['operator'] } }) } });
  });
  await page.route('**/api/operations/backup', (route) => route.fulfill({ json: shown }));
  await page.goto(`${product.url}/console/#/operators/backup`);
  await page.reload();
  await page.getByRole('heading', { level: 1, name: 'Backup' }).waitFor();
  for (const text of texts) await page.getByText(text).waitFor();
  const links = page.locator('main').getByRole('link', { name: 'audit log' });
  expect(await links.count()).toBe(shown && 'restorableFrom' in shown ? 1 : 0);
  if (name === 'away') expect(await page.getByRole('row', { name: /^Last snapshot/ }).count()).toBe(0);
  await lookAt(page, `operators-backup-${name}`);
});

test('names an account that is away, beside the queues of the others', async () => {
  const page = await open('usage');
  await page.route('**/api/operations/queues', async (route) => {
    await route.fulfill({ json: { ...(await (await route.fetch()).json()), away: ['second'] } });
  });
  await page.goto(`${product.url}/console/#/operators/queues`);
  await page.getByText('The storage account second does not respond.').waitFor();
  await page.getByRole('heading', { name: 'transfers', exact: true }).waitFor();
});

test('the list of failed messages is read again after a replay that fails', async () => {
  await failMessages(['left 1', 'left 2']);
  const page = await harness.open('#/operators/failed-messages', everything);
  const cards = page.getByRole('listitem').filter({ hasText: 'attempt' });
  await cards.nth(1).waitFor();
  const shown = await cards.count();
  for (const card of await cards.all()) await card.getByRole('checkbox').check();
  const { body } = await operator('GET', '/api/operations/poison?top=1000');
  // Another operator deletes the message that is sent first, which is the newest.
  expect((await operator('DELETE', `/api/operations/poison/${body.items[0].id}`)).status).toBe(204);
  await page.getByRole('button', { name: `Replay ${shown} selected` }).click();
  await page.getByRole('alert').waitFor();
  await expect.poll(() => cards.count()).toBe(shown - 1);
});

test('other roles see no pages of operators', async () => {
  const page = await open('queues', ['hr']);
  await page.getByRole('heading', { level: 1 }).waitFor();
  expect(await page.getByRole('link', { name: 'Failed messages' }).count()).toBe(0);
  expect(await page.getByRole('heading', { name: 'transfers' }).count()).toBe(0);
});

const PAGES = {
  queues: 'Queues',
  'failed-messages': 'Failed messages',
  checks: 'Consistency',
  'checks/employees': 'Consistency of employees',
  model: 'Model changes',
  periods: 'Period tables',
  grants: 'Grants',
  heat: 'Hot partitions',
  indexes: 'Index reads',
  accounts: 'Storage accounts',
  backup: 'Backup',
  usage: 'Usage and cost',
};

test('every page is accessible, fits, and gets no response with an error', async () => {
  await failMessages(['a message of a rather long text that is no JSON and must not widen the page '.repeat(5)]);
  const page = await open('queues');
  for (const [path, name] of Object.entries(PAGES)) {
    await page.goto(`${product.url}/console/#/operators/${path}`);
    await page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
    await page.waitForLoadState('networkidle');
    await expect.poll(() => page.locator('main [aria-busy=true]').count()).toBe(0);
    await lookAt(page, `operators-${path.replace('/', '-')}`);
  }
});

/** Opens the console of an app whose entities have neither own rows nor files, and these periods. */
async function openWithout(period: object | undefined): Promise<Page> {
  const page = await harness.open('', everything);
  await page.route('**/api/model', async (route) => {
    const model = await (await route.fetch()).json();
    for (const entity of Object.values<Record<string, unknown>>(model.entities))
      Object.assign(entity, { period, attachments: {}, access: { ...(entity.access as object), own: undefined } });
    await route.fulfill({ json: model });
  });
  return page;
}

test.each([
  ['keeps its tables', {}, 0],
  ['archives its tables', { archiveTo: 'blob' }, 1],
])('shows grants of an app that %s past retention only if it has their routes', async (_, archive, links) => {
  const page = await openWithout({ per: 'day', field: 'at', keep: 30, ...archive });
  await page.reload();
  await page.getByRole('link', { name: 'Period tables' }).waitFor();
  expect(await page.getByRole('link', { name: 'Grants' }).count()).toBe(links);
});

test('asks for no route that an app without periods and grants lacks', async () => {
  const page = await openWithout(undefined);
  const requested: string[] = [];
  page.on('request', (request) => requested.push(request.url()));
  await page.reload();
  await page.getByRole('link', { name: 'Period tables' }).click();
  await page.getByText('No entity of the model has a period.').waitFor();
  expect(requested.filter((url) => url.includes('period-tables'))).toEqual([]);
  expect(await page.getByRole('link', { name: 'Grants' }).count()).toBe(0);
});
