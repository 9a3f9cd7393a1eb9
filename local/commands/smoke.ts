// Checks that a deployed API serves. It imports only Node modules, because the deployment job that runs it has an Azure
// token and installs no packages.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const USAGE = 'Usage: node local/commands/smoke.ts --url https://rowkey.example [--patience <seconds>]';
/** A package that was just deployed is fetched and loaded first; roles that were just assigned take minutes to apply. */
const PATIENCE_S = 600;
const EVERY_MS = 5_000;
const ANSWER_WITHIN_MS = 30_000;

/** The status of each route without a token. The second shows that the whole app is loaded, the third that it authenticates. Every deployment has these routes. */
const expected = [
  { path: 'api/health', status: 200 },
  { path: 'api/openapi.json', status: 200 },
  { path: 'api/operations/poison', status: 401 },
] as const;

const { url, patience } = readOptions();
const until = Date.now() + patience * 1_000;
for (const { path, status } of expected) {
  const address = new URL(path, url);
  let answer = await ask(address);
  while (answer.status !== String(status) && Date.now() < until) {
    await sleep(Math.min(EVERY_MS, Math.max(0, until - Date.now())));
    answer = await ask(address);
  }
  if (answer.status !== String(status))
    fail(
      `${address.href} did not return ${status} within ${patience} s; last result: ${answer.status}. ${answer.hint}`.trim(),
    );
  console.log(`${address.href} returned ${status}.`);
}

function readOptions(): { url: URL; patience: number } {
  const { values } = parseArguments();
  const text = values.url ?? '';
  // The address of the API may be given with or without the prefix of its routes.
  const base = text.replace(/\/+$/, '').replace(/\/api$/, '');
  if (!/^https?:\/\//.test(base) || !URL.canParse(base)) fail(USAGE);
  const seconds = Number(values.patience ?? PATIENCE_S);
  if (!(seconds >= 0)) fail(USAGE);
  return { url: new URL(`${base}/`), patience: seconds };
}

function parseArguments() {
  try {
    return parseArgs({ options: { url: { type: 'string' }, patience: { type: 'string' } } });
  } catch {
    return fail(USAGE);
  }
}

/** Returns the status as text, or the network error, and the hint of the API. */
async function ask(address: URL): Promise<{ status: string; hint: string }> {
  try {
    const response = await fetch(address, { redirect: 'manual', signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
    const body: unknown = await response.json().catch(() => undefined);
    const hint = typeof body === 'object' && body && 'hint' in body ? String(body.hint) : '';
    return { status: String(response.status), hint };
  } catch (error) {
    const { cause } = error as Error;
    return { status: cause instanceof Error ? cause.message : String(error), hint: '' };
  }
}

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
