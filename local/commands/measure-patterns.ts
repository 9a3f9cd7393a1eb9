import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Role } from '../../lib/define/entity.ts';
import { command, run } from '../cli/command.ts';
import { signToken } from '../instance/identity-provider.ts';
import { type Product, startProduct } from '../instance/start-product.ts';
import { loadSample } from '../packs/load-sample.ts';
import { type Example, PATTERNS } from '../packs/pattern-examples.ts';

const FILE = 'docs/patterns.md';
const SETTLE_MS = 2_000;
const SHOWN = 90;

async function measure(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-patterns-'));
  const product = await startProduct({ port: 0, data: folder });
  try {
    const tokens = {
      hr: await tokenOf(product, folder, 'hr'),
      operator: await tokenOf(product, folder, ['operator', 'hr']),
    };
    await loadSample({ folder, url: product.url, token: tokens.hr });
    // Queues are worked off, and the key that signs links is there, as in a service that has run for a while.
    await ask(product, tokens.hr, { cost: '', path: 'employees/Sales?top=1' });
    await sleep(SETTLE_MS);
    const rows: string[] = [];
    for (const { name, examples } of PATTERNS)
      for (const example of examples)
        rows.push(`| ${linkTo(name)} ${await measured(product, tokens[example.role ?? 'hr'], example)}`);
    await writeFile(FILE, page(rows));
    console.log(`${FILE} has ${rows.length} examples.`);
  } finally {
    await product.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function measured(product: Product, token: string, example: Example): Promise<string> {
  const { status, text, transactions } = await ask(product, token, example);
  if (status >= 400) throw new Error(`${example.path} answered ${status}: ${text}`);
  const shown = text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
  const answer = shown ? `${status} \`${shown.replaceAll('|', '\\|')}\`` : String(status);
  return `| \`${example.method ?? 'GET'} /api/${example.path}\` | ${answer} | ${transactions} | ${example.cost} |`;
}

async function ask({ url }: Product, token: string, { method = 'GET', path, body }: Example) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const init = body ? { method, headers, body: JSON.stringify(body) } : { method, headers };
  const response = await fetch(`${url}/api/${path}`, init);
  const [, transactions = ''] = /desc="(\d+)/.exec(response.headers.get('server-timing') ?? '') ?? [];
  const isText = /json/.test(response.headers.get('content-type') ?? 'json');
  // A signature is nothing for a page, even where its storage is gone; nor are addresses of this machine.
  const text = isText
    ? (await response.text())
        .replace(/"token":"[^"]*"/, '"token":"…"')
        .replace(/http:\/\/127\.0\.0\.1:\d+\/devstoreaccount1/g, 'https://…')
        .replace(/[?&](se|sig|st|sv)=[^"]*/, '?…')
    : `${(await response.arrayBuffer()).byteLength} bytes`;
  return { status: response.status, text, transactions };
}

function tokenOf(
  { instance: { issuer, audience } }: Product,
  folder: string,
  role: Role | readonly Role[],
): Promise<string> {
  return signToken({ folder, issuer, audience, role, email: 'jonesj@contoso.com' });
}

function linkTo(name: string): string {
  const anchor = name
    .toLowerCase()
    .replace(/[^a-z0-9 -]/g, '')
    .replaceAll(' ', '-');
  return `[${name}](#${anchor})`;
}

function page(rows: readonly string[]): string {
  const sections = PATTERNS.map(({ name, about, modules, tests }) => {
    const links = (files: readonly string[]) =>
      files.map((file) => `[${file.split('/').at(-1)}](../${file})`).join(', ');
    return `## ${name}\n\n${about}\n\nModules: ${links(modules)}. Tests: ${links(tests)}.\n`;
  });
  return `# The patterns and what they cost

Written by \`npm run patterns\`, which runs each request against the product: the transactions are those that the answer
reported in \`Server-Timing\`, beside what the design guide lets one expect.

| Pattern | Request | Answer | Transactions | By the guide |
|---|---|---|---:|---|
${rows.join('\n')}

${sections.join('\n')}`;
}

await run(command(`Runs an example of each pattern and writes what it cost to ${FILE}.`).action(measure));
