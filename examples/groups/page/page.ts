import '@picocss/pico/css/pico.min.css';
import { decodeJwt } from 'jose';
import { createClient } from '../../../lib/client/index.ts';
import type { model } from '../model.ts';
import { signIn } from './sign-in.ts';

const find = (selector: string) => document.querySelector(selector) as HTMLInputElement;
const { api = '' } = document.body.dataset;
const token = await signIn(api, find('#sign'));
const { sub: me = '', email = me } = token ? decodeJwt<{ email?: string }>(token) : {};
const client = createClient<typeof model>({ url: `${api}/api`, token });

/** Does something and shows the group, or why it failed. */
async function run(act: () => Promise<unknown>): Promise<void> {
  const problem = await act()
    .then(show)
    .catch(({ message }) => message);
  find('#problem').textContent = problem ?? '';
}

function add(list: string, text: string, buttons: Record<string, () => Promise<unknown>> = {}): void {
  const item = Object.assign(document.createElement('li'), { textContent: `${text} ` });
  for (const [textContent, act] of Object.entries(buttons))
    item.append(Object.assign(document.createElement('button'), { textContent, onclick: () => run(act) }));
  find(list).append(item);
}

async function show(): Promise<void> {
  const mine = await Array.fromAsync(client.groups.mine());
  find('#groups').replaceChildren(...mine.map(({ name, groupId }) => new Option(name, groupId)));
  const chosen = mine.find(({ groupId }) => location.hash === `#${groupId}`) ?? mine[0];
  if (!chosen) return;
  const { groupId, ownerId } = chosen;
  find('#groups').value = groupId;
  find('#invite').hidden = ownerId !== me;
  const members = await Array.fromAsync(client.members.range({ groupId }));
  const names = new Map(members.map(({ userId, name }) => [userId, name]));
  const expenses = await Array.fromAsync(client.expenses.range({ groupId }));
  const totals = await Array.fromAsync(client.expenses.totals.balances.range({ groupId }));
  for (const list of ['#expenses', '#balances']) find(list).replaceChildren();
  for (const { title, amount, paidBy, status, receipt, ...key } of expenses) {
    const open = async () => {
      const file = await client.expenses.files.receipt.get(key);
      if (file) window.open(URL.createObjectURL(file.blob));
    };
    const finish = () => client.operations.finish({ groupId, expenseId: key.expenseId });
    const isMyDraft = paidBy === me && status === 'draft';
    const buttons = { ...(receipt && { 'Open receipt': open }), ...(isMyDraft && { Finish: finish }) };
    add('#expenses', `${title}: ${amount.toFixed(2)} by ${names.get(paidBy) ?? paidBy}, ${status}`, buttons);
  }
  const share = totals.reduce((all, { sum }) => all + sum.amount, 0) / members.length;
  for (const { userId, name } of members) {
    const paid = totals.find(({ group }) => group.paidBy === userId)?.sum.amount ?? 0;
    add('#balances', `${name}: ${(paid - share).toFixed(2)}`);
  }
}

/** What the forms do, by id. */
const forms: Record<string, (fields: Record<string, string | File>) => Promise<unknown>> = {
  async create({ name }) {
    const groupId = crypto.randomUUID();
    await client.groups.create({ groupId, ownerId: me, name: String(name) });
    await client.members.create({ groupId, userId: me, name: email });
    location.hash = groupId;
  },
  async join({ code }) {
    location.hash = (await client.operations.join({ code: String(code), name: email })).groupId;
  },
  async add({ title, amount, receipt }) {
    const key = { groupId: find('#groups').value, expenseId: crypto.randomUUID() };
    const draft = { ...key, paidBy: me, title: String(title), amount: Number(amount), status: 'draft' } as const;
    await client.expenses.create(draft);
    if (receipt instanceof File && receipt.size > 0) await client.expenses.files.receipt.put(key, receipt);
  },
  async invite() {
    const code = crypto.randomUUID();
    const expiresAt = new Date(Date.now() + 86_400_000).toISOString();
    await client.invitations.create({ groupId: find('#groups').value, code, expiresAt });
    find('#invite input').defaultValue = code;
  },
};
for (const form of document.forms)
  form.onsubmit = (event) => {
    event.preventDefault();
    run(async () => {
      await forms[form.id]?.(Object.fromEntries(new FormData(form)));
      form.reset();
    });
  };
find('#groups').onchange = async () => run(async () => location.replace(`#${find('#groups').value}`));
find('#app').hidden = token === '';
if (token) run(async () => undefined);
