import '@picocss/pico/css/pico.min.css';
import { createClient, type Me } from '../../../lib/client/index.ts';
import { openSession } from '../../../lib/client/sign-in.ts';
import type { model } from '../model.ts';

const find = (selector: string) => document.querySelector(selector) as HTMLInputElement;
const url = `${document.body.dataset.api}/api`;
const session = await openSession({ url });
const client = createClient<typeof model>({ url, token: session.isSignedIn ? session.token : undefined });
let me: Me;
// The link of an invitation outlives the way through the sign-up, which leads back to the page alone.
const invited = new URLSearchParams(location.search).get('join') || sessionStorage.getItem('join');
sessionStorage.setItem('join', session.isSignedIn ? '' : (invited ?? ''));

/** Does something and shows the group, or why it failed. */
async function run(act: () => Promise<unknown> = async () => undefined): Promise<void> {
  const [done] = await Promise.allSettled([act().then(show)]);
  find('#problem').textContent = done.status === 'rejected' ? done.reason.message : '';
}

function add(list: string, text: string, buttons: Record<string, () => Promise<unknown>>): void {
  const item = Object.assign(document.createElement('li'), { textContent: `${text} ` });
  for (const [textContent, act] of Object.entries(buttons))
    item.append(Object.assign(document.createElement('button'), { textContent, onclick: () => run(act) }));
  find(list).append(item);
}

async function show(): Promise<void> {
  me = await client.me();
  const mine = await Array.fromAsync(client.groups.mine());
  const options = mine.map((one) => new Option(one.name, one.groupId, false, location.hash === `#${one.groupId}`));
  find('#groups').replaceChildren(...options);
  const groupId = find('#groups').value;
  if (groupId === '') return;
  const members = await Array.fromAsync(client.members.range({ groupId }));
  find('#invite').hidden = members.every(({ userId, role }) => userId !== me.subject || role !== 'owner');
  const expenses = await Array.fromAsync(client.expenses.range({ groupId }));
  const totals = await Array.fromAsync(client.expenses.totals.balances.range({ groupId }));
  for (const list of ['#expenses', '#balances']) find(list).replaceChildren();
  for (const { title, amount, paidBy, status, receipt, expenseId } of expenses) {
    const key = { groupId, expenseId };
    const isOwnDraft = paidBy === me.subject && status === 'draft';
    const payer = members.find(({ userId }) => userId === paidBy)?.name ?? paidBy;
    const open = (file?: { blob: Blob }) => file && window.open(URL.createObjectURL(file.blob));
    add('#expenses', `${title}: ${amount.toFixed(2)} by ${payer}, ${status}`, {
      ...(receipt && { 'Open receipt': () => client.expenses.files.receipt.get(key).then(open) }),
      ...(isOwnDraft && { Finish: () => client.expenses.update(key, { status: 'final' }, { ifMatch: '*' }) }),
    });
  }
  const share = totals.reduce((all, { sum }) => all + sum.amount, 0) / members.length;
  for (const { userId, name } of members) {
    const paid = totals.find(({ group }) => group.paidBy === userId)?.sum.amount ?? 0;
    add('#balances', `${name}: ${(paid - share).toFixed(2)}`, {});
  }
}

async function join(code: string): Promise<void> {
  location.hash = (await client.operations.join({ code })).groupId;
}

/** The account itself is the identity provider's. */
async function leave(): Promise<void> {
  if ((await client.eraseOwnData()).failed > 0) throw new Error('Some of it was just being changed. Try again.');
  session.signOut();
}

/** What the forms do, by id. */
const forms: Record<string, (fields: FormData) => Promise<unknown>> = {
  async create(fields) {
    const name = String(fields.get('name'));
    const { groupId } = await client.operations.createGroup({ name });
    location.hash = groupId;
  },
  join: async (fields) => join(String(fields.get('code'))),
  async add(fields) {
    const [groupId, title, amount] = [find('#groups').value, String(fields.get('title')), Number(fields.get('amount'))];
    const [from, to] = ['from', 'to'].map((name) => String(fields.get(name)) || undefined);
    const { values } = await client.expenses.create({ groupId, title, amount, from, to });
    const receipt = fields.get('receipt') as File;
    if (receipt.size > 0) await client.expenses.files.receipt.put(values, receipt);
  },
  async invite() {
    const { values } = await client.invitations.create({ groupId: find('#groups').value });
    find('#invite input').defaultValue = `${location.origin}${location.pathname}?join=${values.code}`;
  },
};
document.onsubmit = (event) => {
  const form = event.target as HTMLFormElement;
  event.preventDefault();
  run(async () => forms[form.id]?.(new FormData(form)).then(() => form.reset()));
};
find('#groups').onchange = () => run(async () => location.replace(`#${find('#groups').value}`));
find('#sign').textContent = session.isSignedIn ? 'Sign out' : 'Sign in';
find('#sign').onclick = session.isSignedIn ? session.signOut : session.signIn;
find('#sign').disabled = false;
find('#app').hidden = !session.isSignedIn;
find('#erase').onclick = () => confirm('Delete everything that is yours?') && run(leave);
if (session.isSignedIn) run(async () => invited && join(invited));
else if (invited) {
  const { name } = await client.operations.invited({ code: invited });
  find('#problem').textContent = `You are invited to ${name}: sign in, or create an account, to join.`;
}
