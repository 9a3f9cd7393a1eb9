import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { Step } from '../../lib/storage/explain.ts';
import { createCommand, run } from '../cli/command.ts';
import { deployedApp } from '../instance/deployed-app.ts';
import { signToken } from '../instance/identity-provider.ts';
import { type Product, startProduct } from '../instance/start-product.ts';
import { GUIDE_PATTERNS } from '../packs/guide-patterns.ts';
import { loadSamples } from '../packs/load-samples.ts';
import { type Example, readPatternExamples } from '../packs/pattern-examples.ts';
import { requirePack } from '../packs/remove-packs.ts';

const FILE = 'docs/internals/patterns.md';
const SETTLE_MS = 2_000;
const SHOWN = 90;

async function measure(): Promise<void> {
  await requirePack('directory', 'npm run patterns');
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-patterns-'));
  const product = await startProduct({ app: deployedApp, port: 0, data: folder });
  try {
    const tokens = {
      hr: await createToken(product, folder, 'hr'),
      operator: await createToken(product, folder, ['operator', 'hr']),
    };
    await loadSamples({ folder, url: product.url, token: tokens.hr });
    const examples = await readPatternExamples(Date.now());
    const unknown = [...examples.keys()].filter((pattern) => GUIDE_PATTERNS.every(({ name }) => name !== pattern));
    if (unknown.length > 0) throw new Error(`A pack has examples of unknown patterns: ${unknown.join(', ')}.`);
    // Simulates a service that has run for a while: the queues are empty and the key that signs continuations is cached.
    for (const example of [...examples.values()].flat())
      if (example.path.includes('top=')) await ask(product, tokens[example.role ?? 'hr'], example);
    await sleep(SETTLE_MS);
    const rows: string[] = [];
    for (const { name } of GUIDE_PATTERNS)
      for (const example of examples.get(name) ?? [])
        rows.push(`| ${formatLink(name)} ${await measureExample(product, tokens[example.role ?? 'hr'], example)}`);
    await writeFile(FILE, formatPage(rows));
    console.log(`${FILE} has ${rows.length} examples.`);
  } finally {
    await product.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function measureExample(product: Product, token: string, example: Example): Promise<string> {
  // A read is explained after it is measured, because a process may remember what it read, and a write before, because it cannot be repeated.
  const isRead = example.method === 'GET';
  const before = isRead ? undefined : await countPlaces(product, token, example);
  const { status, text, transactions } = await ask(product, token, example);
  const places = before ?? (await countPlaces(product, token, example));
  if (status >= 400) throw new Error(`${example.method} ${example.path} returned ${status}: ${text}`);
  const shown = text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
  const answer = shown ? `${status} \`${shown.replaceAll('|', '\\|')}\`` : String(status);
  return `| \`${example.method} /api/${example.path}\` | ${answer} | ${transactions} | ${places} | ${example.cost} | ${example.naive} |`;
}

const Explanation = z.object({ steps: z.array(Step) });

/** The number of partitions and blobs that a request reads or changes: no transaction covers two of them. */
async function countPlaces(product: Product, token: string, example: Example): Promise<number> {
  const path = `${example.path}${example.path.includes('?') ? '&' : '?'}explain=true`;
  const { status, text } = await ask(product, token, { ...example, path });
  if (status >= 400) throw new Error(`${example.method} ${path} returned ${status}: ${text}`);
  return new Set(Explanation.parse(JSON.parse(text)).steps.flatMap(placesOf)).size;
}

/** A message is no place: only the promise that indexes agree after a crash needs it. */
function placesOf(step: Step): string[] {
  if ('queue' in step) return [];
  if ('container' in step) {
    // Concurrent requests share an append to the audit log.
    if ('does' in step) return step.does === 'append' ? [] : [step.container];
    return [`${step.container} ${'name' in step ? step.name : step.prefix}`];
  }
  const partition = 'filter' in step ? /PartitionKey eq '((?:[^']|'')*)'/.exec(step.filter)?.[1] : undefined;
  return [`${step.table} ${'partition' in step ? step.partition : partition}`];
}

const UUID = '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}';

async function ask({ url }: Product, token: string, { method, path, body }: Example) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const init = body ? { method, headers, body: JSON.stringify(body) } : { method, headers };
  const response = await fetch(`${url}/api/${path}`, init);
  const [, transactions = ''] = /desc="(\d+)/.exec(response.headers.get('server-timing') ?? '') ?? [];
  const today = new Date().toISOString().slice(0, 10);
  const isText = /json/.test(response.headers.get('content-type') ?? 'json');
  // Signatures and addresses of this machine do not belong in the docs. Ids and instants of a run would change with each run.
  const text = isText
    ? (await response.text())
        .replace(/"token":"[^"]*"/, '"token":"…"')
        .replace(/http:\/\/127\.0\.0\.1:\d+\/devstoreaccount1/g, 'https://…')
        .replace(/[?&](se|sig|st|sv)=[^"]*/, '?…')
        .replace(new RegExp(`(${today}-)?${UUID}`, 'g'), '…')
        .replace(new RegExp(`${today}T[\\d:.%A]*Z`, 'g'), '…')
    : `${(await response.arrayBuffer()).byteLength} bytes`;
  return { status: response.status, text, transactions };
}

function createToken(
  { instance: { issuer, audience } }: Product,
  folder: string,
  role: string | readonly string[],
): Promise<string> {
  return signToken({ folder, issuer, audience, role, email: 'jonesj@contoso.com' });
}

function formatLink(name: string): string {
  const anchor = name
    .toLowerCase()
    .replace(/[^a-z0-9 -]/g, '')
    .replaceAll(' ', '-');
  return `[${name}](#${anchor})`;
}

function formatPage(rows: readonly string[]): string {
  const sections = GUIDE_PATTERNS.map(({ name, about, modules, tests }) => {
    const formatLinks = (files: readonly string[]) =>
      files.map((file) => `[${file.split('/').at(-1)}](../${file})`).join(', ');
    return `## ${name}\n\n${about}\n\nModules: ${formatLinks(modules)}. Tests: ${formatLinks(tests)}.\n`;
  });
  return `# Patterns and their cost

Each pattern of the [Table storage design guide](https://learn.microsoft.com/azure/storage/tables/table-storage-design-guide), with requests that use it. \`npm run patterns\`
writes this page: it runs each request against the sample company. *Transactions* is the number that the response reports in \`Server-Timing\`; *Least* is the number of
partitions and blobs that the request reads or changes, of which no transaction covers two; *Expected* is the
number that the design guide predicts, and *The naive way* what plain rows without the pattern would take; a scan reads at most 1,000 rows per transaction.

| Pattern | Request | Response | Transactions | Least | Expected | The naive way |
|---|---|---|---:|---:|---|---|
${rows.join('\n')}

${sections.join('\n')}`;
}

await run(createCommand(`Runs the examples of each pattern and writes their cost to ${FILE}.`).action(measure));
