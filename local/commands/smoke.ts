// Checks that a deployed API serves. It imports only Node modules, because the deployment job that runs it has an Azure
// token and installs no packages.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const USAGE = 'Usage: node local/commands/smoke.ts --url https://rowkey.example [--patience <seconds>]';
/** A package that was just deployed is fetched and loaded first; roles that were just assigned take minutes to apply. */
const PATIENCE_S = 600;
const EVERY_MS = 5_000;
const ANSWER_WITHIN_MS = 30_000;
/** The fields of a path in OpenAPI that are operations. */
const METHODS = ['get', 'put', 'post', 'patch', 'delete'] as const;

const CONCURRENCY = 8;

interface Expected {
  readonly method: string;
  readonly path: string;
  readonly status: number;
}

/** The part of an OpenAPI description that this command reads. */
interface Description {
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components?: {
    readonly parameters?: Readonly<Record<string, Parameter>>;
    readonly schemas?: Readonly<Record<string, Schema>>;
  };
}

interface PathItem extends Readonly<Partial<Record<(typeof METHODS)[number], Operation>>> {
  readonly parameters?: Operation['parameters'];
}

interface Operation {
  /** The roles that are accepted; empty if no token is needed. */
  readonly security?: readonly unknown[];
  readonly parameters?: readonly (Parameter | Ref)[];
}

interface Parameter {
  readonly name: string;
  readonly schema: Schema | Ref;
}

interface Schema {
  readonly enum?: readonly string[];
}

interface Ref {
  readonly $ref: string;
}

const { url, patience } = readOptions();
const until = Date.now() + patience * 1_000;
await expectStatus({ method: 'GET', path: 'api/health', status: 200 });
// The description is built from the model, so it names every route of the app, also one that the host did not load.
const description = await expectStatus({ method: 'GET', path: 'api/openapi.json', status: 200 });
const closed = readClosedRoutes(description);
if (closed.length === 0) fail(`${new URL('api/openapi.json', url).href} describes no route that needs a token.`);
const waiting = [...closed];
await Promise.all(
  Array.from({ length: CONCURRENCY }, async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await expectStatus(next);
  }),
);
console.log(`${closed.length} routes returned 401 without a token.`);

/** Every route that needs a token. Without one, a request changes nothing, whatever its method and path are. */
function readClosedRoutes(text: string): Expected[] {
  const { paths, components: { parameters: shared = {}, schemas = {} } = {} } = JSON.parse(text) as Description;
  const resolve = <One extends object>(one: One | Ref, all: Readonly<Record<string, One>>) =>
    '$ref' in one ? all[one.$ref.split('/').at(-1) ?? ''] : one;
  return Object.entries(paths).flatMap(([template, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method];
      if (!operation || operation.security?.length === 0) return [];
      const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])];
      const toValue = (name: string) => {
        const found = parameters.map((one) => resolve(one, shared)).find((one) => one?.name === name);
        return (found && resolve(found.schema, schemas)?.enum?.[0]) ?? 'x';
      };
      const path = template.slice(1).replace(/\{(\w+)\}/g, (_, name: string) => toValue(name));
      return [{ method: method.toUpperCase(), path, status: 401 }];
    }),
  );
}

/** Repeats a request until it has the status, and returns the body. Ends the process if that takes too long. */
async function expectStatus({ method, path, status }: Expected): Promise<string> {
  const address = new URL(path, url);
  let answer = await ask(method, address);
  while (answer.status !== String(status) && Date.now() < until) {
    await sleep(Math.min(EVERY_MS, Math.max(0, until - Date.now())));
    answer = await ask(method, address);
  }
  if (answer.status !== String(status))
    fail(
      `${method} ${address.href} did not return ${status} within ${patience} s; last result: ${answer.status}. ${hintOf(answer.body)}`.trim(),
    );
  if (status === 200) console.log(`${address.href} returned ${status}.`);
  return answer.body;
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

/** Returns the status as text, with that of a degraded health, or the network error. */
async function ask(method: string, address: URL): Promise<{ status: string; body: string }> {
  try {
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
    const response = await fetch(address, { method, redirect: 'manual', signal });
    const body = await response.text();
    // The API serves, and one of several storage accounts does not: after a deployment, a name or a role may be wrong.
    const isDegraded = response.ok && body.startsWith('{"status":"degraded"');
    return { status: `${response.status}${isDegraded ? ', degraded' : ''}`, body };
  } catch (error) {
    const { cause } = error as Error;
    return { status: cause instanceof Error ? cause.message : String(error), body: '' };
  }
}

/** The hint of the API, if the response has one. */
function hintOf(text: string): string {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body && 'hint' in body ? String(body.hint) : '';
  } catch {
    return '';
  }
}

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
