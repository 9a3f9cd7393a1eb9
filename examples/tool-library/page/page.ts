import { createClient } from '../../../lib/client/index.ts';
import { openSession } from '../../../lib/client/sign-in.ts';
import type { model } from '../model.ts';

const url = import.meta.env.VITE_API ?? 'http://127.0.0.1:7071/api';
const session = await openSession({ url });
const client = createClient<typeof model>({ url, token: session.isSignedIn ? session.token : undefined });
const find = <Found extends HTMLElement>(selector: string) => document.querySelector(selector) as Found;

// Keeps the code of the link while the user signs up.
const code = new URLSearchParams(location.search).get('join') ?? sessionStorage.getItem('join');
sessionStorage.setItem('join', session.isSignedIn ? '' : (code ?? ''));

/** Does something and shows the library again, or why it failed. */
async function run(act: () => Promise<unknown>): Promise<void> {
  try {
    await act();
    await show();
    find('#problem').textContent = '';
  } catch (error) {
    find('#problem').textContent = error instanceof Error ? error.message : String(error);
  }
}

const photos = new Map<string, string>();
/** The URL of a photo, which is read once for each version. */
async function photoOf(key: { libraryId: string; toolId: string }, version: string): Promise<string> {
  const known = photos.get(version);
  if (known) return known;
  const file = await client.tools.files.photo.get(key);
  const source = file ? URL.createObjectURL(file.blob) : '';
  photos.set(version, source);
  return source;
}

async function show(): Promise<void> {
  const [library] = await Array.fromAsync(client.libraries.mine());
  find('#create').hidden = library !== undefined;
  find('main').hidden = library === undefined;
  if (!library) return;
  const { libraryId } = library;
  const { subject } = await client.me();
  const names = new Map<string, string>();
  for await (const { userId, name } of client.members.range({ libraryId })) names.set(userId, name);
  const borrowers = new Map<string, string>();
  for await (const { toolId, borrowerId } of client.loans.range({ libraryId })) borrowers.set(toolId, borrowerId);
  const items: HTMLElement[] = [];
  for await (const { toolId, name, photo } of client.tools.range({ libraryId })) {
    const key = { libraryId, toolId };
    const borrower = borrowers.get(toolId);
    const item = document.createElement('li');
    if (photo) item.append(Object.assign(new Image(), { alt: name, src: await photoOf(key, photo.blob) }));
    const text = borrower ? `${name}, lent to ${names.get(borrower)}` : name;
    item.append(Object.assign(document.createElement('span'), { textContent: text }));
    const button = document.createElement('button');
    if (!borrower) Object.assign(button, { textContent: 'Borrow', onclick: () => run(() => client.loans.create(key)) });
    else Object.assign(button, { textContent: 'Return', onclick: () => run(() => client.loans.delete(key)) });
    if (!borrower || borrower === subject) item.append(button);
    items.push(item);
  }
  find('#library').textContent = library.name;
  find('ul').replaceChildren(...items);
  find<HTMLInputElement>('#link').value = `${location.origin}${location.pathname}?join=${library.code}`;
}

const forms: Record<string, (fields: FormData) => Promise<unknown>> = {
  create: (fields) => client.operations.createLibrary({ name: String(fields.get('name')) }),
  async add(fields) {
    const [library] = await Array.fromAsync(client.libraries.mine());
    if (!library) return;
    const { values } = await client.tools.create({ libraryId: library.libraryId, name: String(fields.get('name')) });
    const photo = fields.get('photo');
    if (photo instanceof File && photo.size > 0) await client.tools.files.photo.put(values, photo);
  },
};
document.onsubmit = (event) => {
  event.preventDefault();
  const form = event.target as HTMLFormElement;
  run(async () => forms[form.id]?.(new FormData(form)).then(() => form.reset()));
};
find('#sign').textContent = session.isSignedIn ? 'Sign out' : 'Sign in';
find('#sign').onclick = session.isSignedIn ? session.signOut : session.signIn;
if (session.isSignedIn) {
  await run(async () => code && client.operations.join({ code }));
  // Nothing pushes changes: the page reads again.
  setInterval(() => run(async () => undefined), 3_000);
} else if (code) find('#problem').textContent = 'You are invited: sign in, or create an account.';
