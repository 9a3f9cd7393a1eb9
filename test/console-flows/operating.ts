import type { Page, Request } from 'playwright-core';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { type ConsoleHarness, holdFirst, lookAt, openPart } from '../console.ts';
import { storageTables } from '../kit/storage.ts';
import { eventually } from '../product.ts';
import { rowsOf, somebody } from '../world.ts';

const everything = ['operator', 'hr', 'reader'];

interface Failure {
  readonly recordedAt: string;
  readonly text?: string;
}

/** Operators of a model with employees, with doorevents that no check compares, and with a period: each page, by its buttons. No request of a page may fail. */
export function testOperating({ product, open: openPage }: ConsoleHarness) {
  let rejected: string[] = [];

  beforeEach(() => {
    rejected = [];
    return () => expect(rejected, 'responses with an error').toEqual([]);
  });

  async function open(path: string, roles: readonly string[] = everything): Promise<Page> {
    const page = await openPage(`#/operators/${path}`, roles);
    page.on('response', (response) => {
      if (response.status() >= 400) rejected.push(`${response.status()} ${response.url()}`);
    });
    return page;
  }

  /** Sends messages that no retry can help, and waits until they are recorded. */
  async function failMessages(texts: readonly string[]): Promise<void> {
    for (const text of texts) await product.storage.queue('index-changes').sendMessage(text);
    await eventually(listFailures, ({ body }) => texts.every((text) => failureOf(body.items, text)));
  }

  const listFailures = () => product.as(everything)('GET', '/api/operations/poison?top=1000');
  const failureOf = (items: readonly Failure[], text: string) => items.find((item) => item.text === text);

  beforeAll(async () => {
    const body = somebody({ department: 'Operating' });
    expect((await product.as('hr')('POST', '/api/employees', { body })).status).toBe(201);
  });

  test('sees the queues and how long their messages wait', async () => {
    const page = await open('queues');
    for (const queue of ['index-changes', 'transfers', 'index-changes-poison', 'transfers-poison'])
      await page.getByRole('heading', { name: queue, exact: true }).waitFor();
    await page.getByRole('button', { name: 'Refresh' }).click();
  });

  test('reads why a message failed and what it contains, replays selected ones and deletes one', async () => {
    await failMessages(['nonsense 1', 'nonsense 2', '{"version":99,"entity":"employees"}']);
    const page = await open('failed-messages');
    const cards = page.getByRole('listitem').filter({ hasText: 'attempt' });
    await cards.nth(2).waitFor();
    await page.getByLabel('Reason contains').fill('JSON');
    await expect.poll(() => cards.count()).toBe(2);
    const { items } = (await listFailures()).body;
    for (const card of await cards.all()) {
      await openPart(card, 'Payload');
      await card.getByText(/^nonsense \d$/).waitFor();
      await card.getByRole('checkbox').check();
    }
    await page.getByRole('button', { name: 'Replay 2 selected' }).click();
    await page.getByText('2 messages were sent again.').waitFor();
    // They still fail, so they come back.
    await eventually(listFailures, ({ body }) =>
      ['nonsense 1', 'nonsense 2'].every((text) => {
        const [former, latter] = [failureOf(items, text), failureOf(body.items, text)];
        return former && latter && latter.recordedAt > former.recordedAt;
      }),
    );
    const refreshed = page.waitForResponse((response) => response.url().includes('/operations/poison?'));
    await page.getByRole('button', { name: 'Refresh' }).click();
    await refreshed;
    await expect.poll(() => cards.count()).toBe(2);
    const remove = cards.first().getByRole('button', { name: 'Delete' });
    await remove.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Delete the message' });
    await dialog.getByText('This cannot be undone.').waitFor();
    await lookAt(page, 'operators-delete-message');
    await dialog.getByRole('button', { name: 'Cancel' }).press('Enter');
    await dialog.waitFor({ state: 'detached' });
    await expect.poll(() => remove.evaluate((button) => button === button.ownerDocument.activeElement)).toBe(true);
    await remove.press('Enter');
    const [cost = ''] = /\d+(?= storage transactions)/.exec(await dialog.innerText()) ?? [];
    const deleted = page.waitForResponse((response) => response.request().method() === 'DELETE');
    await dialog.getByRole('button', { name: 'Delete', exact: true }).press('Enter');
    await page.getByText('The message was deleted.').waitFor();
    expect((await deleted).headers()['server-timing']).toContain(`"${cost} transactions`);
    await expect.poll(() => cards.count()).toBe(1);
    await page.getByRole('button', { name: 'Replay all that match' }).press('Enter');
    const question = page.getByRole('dialog', { name: 'Replay all that match' });
    await question
      .getByText('Sends 1 message whose reason contains “JSON” again, and removes it from this list.')
      .waitFor();
    await lookAt(page, 'operators-replay-all');
    await question.getByRole('button', { name: 'Cancel' }).press('Enter');
    expect(await cards.count()).toBe(1);
    await page.getByRole('button', { name: 'Replay all that match' }).press('Enter');
    await question.getByRole('button', { name: 'Replay' }).press('Enter');
    await page.getByText('1 message was sent again.').waitFor();
  });

  test('sees no payload of an entity that the roles may not read', async () => {
    const text = '{"version":98,"entity":"employees","items":["secret-key"]}';
    await failMessages([text]);
    const page = await open('failed-messages', ['operator']);
    const hidden = page.getByRole('listitem').filter({ hasText: 'Only roles that may read the whole entity' });
    await hidden.first().waitFor({ state: 'attached' });
    expect(await page.content()).not.toContain('secret-key');
  });

  test('checks an entity, repairs what a hand edit broke, and finds nothing afterwards', async () => {
    const rows = await rowsOf(product.storage, 'employees');
    const copy = rows.find(
      ({ partitionKey, rowKey }) => partitionKey === 'Operating' && String(rowKey).startsWith('email'),
    );
    await product.storage.table('employees').deleteEntity(String(copy?.partitionKey), String(copy?.rowKey));
    const page = await open('checks');
    await page.getByRole('table').getByRole('link', { name: 'employees', exact: true }).click();
    await page.getByRole('button', { name: 'Check now' }).click();
    await page.getByRole('alert').filter({ hasText: '1 finding.' }).waitFor();
    await page.getByRole('cell', { name: 'missing' }).waitFor();
    const dialog = page.getByRole('dialog', { name: 'Check and repair employees' });
    await page.getByRole('button', { name: 'Check and repair' }).press('Enter');
    await dialog.getByText(/compared [\d,]+ rows? with [\d,]+ storage transactions and left 1 finding/).waitFor();
    await lookAt(page, 'operators-repair');
    await dialog.getByRole('button', { name: 'Check and repair' }).press('Enter');
    await page.getByText('1 finding, 1 repaired.').waitFor();
    await page.getByRole('button', { name: 'Check now' }).click();
    await page.getByText('0 findings.').waitFor();
  });

  test('sees the cost of a check at no other page', async () => {
    const page = await open('checks/employees');
    const isCheck = (request: Request) => request.method() === 'POST' && request.url().includes('/verify/employees');
    const check = await holdFirst(page, isCheck);
    const ended = page.waitForEvent('requestfinished', isCheck);
    await page.getByRole('button', { name: 'Check now' }).click();
    await check.held;
    await page.getByRole('link', { name: 'Queues', exact: true }).click();
    await openPart(page, 'This page:');
    const requests = page.getByRole('region', { name: 'Requests of this page' }).locator('tbody tr');
    await requests.filter({ hasText: 'GET /operations/queues' }).waitFor();
    await check.release();
    await ended;
    await page.getByRole('button', { name: 'Refresh' }).click();
    await expect.poll(() => requests.count()).toBeGreaterThan(1);
    expect(await requests.filter({ hasText: 'verify' }).count()).toBe(0);
  });

  test('builds an index that a change of the model left to build', async () => {
    const table = product.storage.table('system');
    const { Shape, etag } = await table.getEntity<{ Shape: string }>('model', 'employees');
    const shape = JSON.parse(Shape);
    const [index] = Object.keys(shape.indexes);
    const changed = {
      partitionKey: 'model',
      rowKey: 'employees',
      Shape: JSON.stringify({ ...shape, unbuilt: [index] }),
    };
    await table.updateEntity(changed, 'Merge', { etag });
    const page = await open('model');
    await page.getByRole('heading', { name: `Build ${index} of employees` }).waitFor();
    await page.getByRole('button', { name: 'Build' }).click();
    await page.getByText('Nothing is left to do').waitFor();
  });

  test('cleans up a former index after the dialog has said what it deletes', async () => {
    const table = product.storage.table('system');
    const { Shape, etag } = await table.getEntity<{ Shape: string }>('model', 'employees');
    const shape = JSON.parse(Shape);
    const leftOver = {
      formerCopy: { kind: 'intra-partition', row: 'former_{employeeId}', unique: false, copies: 'all' },
      formerTable: {
        kind: 'inter-partition',
        table: 'formerindex',
        partition: '{email}',
        row: 'x',
        unique: false,
        copies: 'all',
      },
    };
    const changed = { partitionKey: 'model', rowKey: 'employees', Shape: JSON.stringify({ ...shape, leftOver }) };
    await table.updateEntity(changed, 'Merge', { etag });
    await product.storage.table('formerindex').createTable();
    const former = { partitionKey: 'Operating', rowKey: 'former_1', EntityType: 'employees', SourceRow: 'empid_1' };
    await product.storage.table('employees').createEntity(former);
    const page = await open('model');
    const tables = async () => (await storageTables.listTables(product.storage, 'formerindex')).length;
    const ask = async (index: string) => {
      const task = page.getByRole('listitem').filter({ hasText: `Clean up ${index} of employees` });
      await task.getByRole('button', { name: 'Clean up' }).click();
      return page.getByRole('dialog', { name: `Clean up ${index} of employees` });
    };
    const dialog = await ask('formerTable');
    await dialog.getByText('Drops the table formerindex with all its rows').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    expect(await tables()).toBe(1);
    await (await ask('formerTable')).getByRole('button', { name: 'Clean up' }).click();
    await expect.poll(tables).toBe(0);
    const ofRows = await ask('formerCopy');
    await ofRows
      .getByText(/deletes the rows of the index: \d rows? on the first page, with \d+ storage transactions/)
      .waitFor();
    await lookAt(page, 'operators-clean-up');
    const reload = await holdFirst(page, (request) => request.url().endsWith('/operations/model'));
    await ofRows.getByRole('button', { name: 'Clean up' }).click();
    await page.getByText(/rows? read: 1 deleted\./).waitFor();
    await reload.release();
    await page.getByText('Nothing is left to do').waitFor();
    const keys = (await rowsOf(product.storage, 'employees')).map(({ rowKey }) => rowKey);
    expect(keys).not.toContain('former_1');
    expect(keys.some((key) => String(key).startsWith('empid_'))).toBe(true);
  });

  test('sees the tables of periods, and the transactions of today by pattern', async () => {
    const page = await open('periods');
    await page
      .getByRole('cell', { name: new Date().toISOString().slice(0, 10) })
      .first()
      .waitFor();
    await page.getByRole('link', { name: 'Usage and cost' }).click();
    await page.getByRole('rowheader', { name: 'eventual transaction' }).first().waitFor();
    await page
      .getByText(/^(< )?\$\d/)
      .first()
      .waitFor();
  });

  test('revokes the grants of an identity, and restores them', async () => {
    const page = await open('grants');
    await page.getByLabel('Subject of the user').fill('ann@contoso.com');
    await page.keyboard.press('Enter');
    const revoked = async () => (await product.as('operator')('GET', '/api/operations/grants/revoked')).body.items;
    const dialog = page.getByRole('dialog', { name: 'Revoke grants' });
    await dialog.getByText('ann@contoso.com gets no new grants').waitFor();
    await lookAt(page, 'operators-revoke');
    await dialog.getByRole('button', { name: 'Cancel' }).press('Enter');
    expect(await revoked()).toEqual([]);
    await page.getByRole('button', { name: 'Revoke grants' }).click();
    await dialog.getByRole('button', { name: 'Revoke', exact: true }).press('Enter');
    await page.getByText('ann@contoso.com gets no more grants.').waitFor();
    expect(await revoked()).toMatchObject([{ subject: 'ann@contoso.com' }]);
    await page.getByRole('button', { name: 'Restore the grants of ann@contoso.com' }).click();
    await page.getByText('ann@contoso.com may get grants again.').waitFor();
  });

  test.each([
    ['checks/nothing', 'Check not found', 'The model has no entity “nothing”.', 'Consistency'],
    ['checks/doorevents', 'Check not found', 'No check compares the rows of doorevents.', 'Consistency'],
    ['nothing', 'Page not found', 'The console has no such page', 'the overview'],
  ])('says what is wrong with the address %s', async (path, heading, reason, target) => {
    const page = await open(path);
    await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor();
    await page.getByRole('main').getByText(reason).waitFor();
    await page.getByRole('link', { name: `Back to ${target}` }).waitFor();
  });

  return { open, failMessages };
}
