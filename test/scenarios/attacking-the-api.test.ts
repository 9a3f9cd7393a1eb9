import { Agent, request } from 'node:http';
import fc from 'fast-check';
import pMap from 'p-map';
import { expect, inject, test } from 'vitest';
import { type Attack, aligned, attacksOn, SECRET, SEEN, WHO } from '../attack.ts';
import { model } from '../fixtures/model.ts';
import { httpDoor } from '../kit/http.ts';
import { type OpenApi, openapiChecker, withoutReferences } from '../openapi.ts';
import { IS_EVERY_POINT } from '../points.ts';
import { eventually, useProduct } from '../product.ts';

/** ATTACK_REQUESTS=20000 for an attack; ATTACK_SEED repeats the requests of a run. */
const REQUESTS = Number(process.env.ATTACK_REQUESTS ?? (IS_EVERY_POINT ? 1_500 : 500));
const SEED = Number(process.env.ATTACK_SEED ?? inject('seed'));
const CONCURRENCY = 8;
/** The maximum duration of a request on a busy machine. */
const ANSWER_WITHIN_MS = 60_000;
/** Statuses of the host itself: the request line or the headers are not valid HTTP, or too long. */
const REFUSED_BY_HOST = [400, 414, 431];
const REMEMBERED = 200;

const product = useProduct(import.meta.url);
const agent = new Agent({ keepAlive: true });
const restricted = [...new Set(model.list.flatMap(({ access }) => Object.keys(access.restricted ?? {})))];

interface Received {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Sends raw bytes, because fetch normalizes the path. */
function send(attack: Attack, headers: Record<string, string>): Promise<Received> {
  const { method, path, body, isChunked } = attack;
  const { hostname, port } = new URL(product.url);
  return new Promise((resolve, reject) => {
    // Without either header, Node sends the body of a DELETE as if it were another request.
    const framing: Record<string, string> = isChunked
      ? { 'transfer-encoding': 'chunked' }
      : { 'content-length': String(Buffer.byteLength(body ?? '')) };
    const length = body === undefined ? {} : framing;
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
    const sent = request(
      { agent, hostname, port, method, path, headers: { ...headers, ...length }, signal },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const received = new Headers();
          for (const [name, values] of Object.entries(response.headersDistinct))
            for (const value of values ?? []) received.append(name, value);
          resolve({ status: response.statusCode ?? 0, headers: received, text: Buffer.concat(chunks).toString() });
        });
      },
    );
    sent.on('error', (error: NodeJS.ErrnoException) => {
      // The host may close an idle connection at the moment of its reuse:
      // https://nodejs.org/api/http.html#requestreusedsocket
      if (sent.reusedSocket && error.code === 'ECONNRESET') resolve(send(attack, headers));
      else reject(error);
    });
    sent.end(body);
  });
}

/** Removes `.` and `..` from a path, as the host does. */
function resolved(path: string): string {
  const url = URL.parse(path, product.url);
  return url ? url.pathname + url.search : path;
}

async function tokens(): Promise<Record<Attack['who'], string | undefined>> {
  const [reader, hr, operator] = await Promise.all(
    (['reader', 'hr', 'operator'] as const).map((role) => product.token(role)),
  );
  const owner = await product.token('reader', 'ann@contoso.com');
  const [header = '', payload = '', signature = ''] = String(reader).split('.');
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
  return {
    reader,
    hr,
    operator,
    owner,
    nobody: undefined,
    'unknown role': await product.token('constructor'),
    'forged role': [header, part({ ...claims, roles: ['hr', 'operator'] }), signature].join('.'),
    unsigned: [part({ alg: 'none', typ: 'JWT' }), part({ ...claims, roles: ['hr', 'operator'] }), ''].join('.'),
    garbage: 'x.y.z',
  };
}

/** The roles that a token of this kind certainly has. */
const ROLES_OF: Readonly<Record<Attack['who'], readonly string[]>> = {
  ...Object.fromEntries(WHO.map((who) => [who, []])),
  reader: ['reader'],
  owner: ['reader'],
  hr: ['hr'],
  operator: ['operator'],
} as never;

test(`${REQUESTS} hostile requests get described responses, no unexpected 5xx and no secret`, {
  tags: ['slow'],
  timeout: 7_200_000,
}, async () => {
  const described = (await (await fetch(new URL('/api/openapi.json', product.url))).json()) as OpenApi;
  const openapi = withoutReferences(described);
  const checker = openapiChecker(openapi, httpDoor.createRoutes(model));
  const authorizations = await tokens();
  const operations = new Map(
    Object.values(openapi.paths).flatMap((methods) => Object.values(methods).map((one) => [one.operationId, one])),
  );
  const seen: Record<string, string[]> = { etag: [], continuation: [], id: [] };
  const remember = (kind: string, value: string | undefined | null) => {
    if (value) seen[kind] = [value, ...(seen[kind] ?? [])].slice(0, REMEMBERED);
  };
  const fill = (text: string) =>
    text.replace(SEEN, (_, kind, number) => {
      const [name, segments] = kind.split(' ');
      const all = seen[name] ?? [];
      const found = all[Number(number) % Math.max(1, all.length)];
      // The requested number of key parts from the path of an entity.
      if (!segments) return found ?? 'none';
      return (found ?? `${name}/none/none/none`)
        .split('/')
        .slice(0, 3 + Number(segments))
        .join('/');
    });
  const byStatus = new Map<number, number>();
  const violations = new Map<string, { times: number; example: string }>();

  function violate(attack: Attack, why: string): void {
    const { method, path, who, headers, body } = attack;
    // Failures are distinguished by their cause and not by their values.
    const kind = `${attack.operationId}: ${why.replace(/\/api\/\S+/g, '')}`.slice(0, 400);
    const example = JSON.stringify({ who, method, path, headers, body: String(body ?? '') }).slice(0, 700);
    violations.set(kind, { example, times: (violations.get(kind)?.times ?? 0) + 1 });
  }

  function judge(attack: Attack, { status, headers, text }: Received): void {
    const { method, who } = attack;
    const path = resolved(attack.path);
    if (SECRET.test(text) && !ROLES_OF[who].includes('hr')) violate(attack, `a secret is shown to ${who}`);
    if (status >= 500 && !(status === 503 && headers.has('retry-after'))) violate(attack, `status ${status}: ${text}`);
    if (method === 'HEAD' || method === 'OPTIONS') return;
    const meant = checker.operationsOf({ method, path });
    if (status >= 400 && headers.get('content-type') !== httpDoor.PROBLEM_TYPE) {
      const isOfHost = REFUSED_BY_HOST.includes(status) && text === '';
      if (!isOfHost && !(status >= 500 && meant.includes('health')))
        violate(attack, `${status} is no problem: ${text}`);
      return;
    }
    const disagreement = checker.disagreement({ method, path, status, headers, text });
    if (disagreement) violate(attack, disagreement);
    if (status >= 400 && JSON.parse(text).status !== status) violate(attack, `${status} says another status: ${text}`);
    const allowed = meant.map((id) => operations.get(id)?.security.flatMap(({ token }) => token) ?? []);
    const isAllowed = allowed.some((roles) => roles.length === 0 || roles.some((role) => ROLES_OF[who].includes(role)));
    if (status < 400 && !isAllowed) violate(attack, `${who} is answered ${status}`);
  }

  async function attempt(made: Attack): Promise<void> {
    const headers = Object.fromEntries(
      Object.entries(made.headers).map(([name, value]) => [name, Buffer.from(fill(value)).toString('latin1')]),
    );
    const path = fill(made.path);
    const attack = { ...made, path, headers, body: aligned({ ...made, path }) };
    const token = authorizations[attack.who];
    const authorization: Record<string, string> = token ? { authorization: `Bearer ${token}` } : {};
    try {
      const received = await send(attack, { ...headers, ...authorization });
      byStatus.set(received.status, (byStatus.get(received.status) ?? 0) + 1);
      judge(attack, received);
      remember('etag', received.headers.get('etag'));
      remember('continuation', /[?&]continuation=([^&>]+)/.exec(received.headers.get('link') ?? '')?.[1]);
      const location = received.headers.get('location');
      remember(/^\/api\/\w+(?=\/)/.exec(location ?? '')?.[0] ?? '', received.status === 201 ? location : null);
      remember('id', /"(?:operationId|uploadId|id)":"([^"]+)"/.exec(received.text)?.[1]);
    } catch (error) {
      byStatus.set(0, (byStatus.get(0) ?? 0) + 1);
      // A host that rejects a large body may close the connection during the upload.
      const bytes = Buffer.byteLength(attack.body ?? '');
      if (bytes < 1_000_000) violate(attack, `no answer to ${bytes} bytes: ${String(error)}`);
    }
  }

  const attacks = fc.sample(attacksOn(openapi, { restricted }), { seed: SEED, numRuns: REQUESTS });
  const since = performance.now();
  await pMap(attacks, attempt, { concurrency: CONCURRENCY });
  const seconds = Math.round((performance.now() - since) / 1000);
  const counts = [...byStatus].sort(([one], [other]) => one - other).map(([status, times]) => `${status}: ${times}`);
  console.log(`ATTACK_SEED=${SEED}, ${attacks.length} requests in ${seconds} s, by status: ${counts.join(', ')}`);

  const unexpected = product.logged.filter((line) => line.includes('An unexpected'));
  if (violations.size > 0) console.log([...new Set(unexpected)].join('\n'));
  expect([...violations].map(([why, { times, example }]) => `${times} x ${why}\n    ${example}`)).toEqual([]);
  await eventually(
    () => product.as(undefined)('GET', '/api/health'),
    ({ body }) => body.status === 'ok',
  );

  // Whatever was written, the queues make every index agree, and no message becomes poison.
  const operator = product.as('operator');
  for (const { name } of model.list.filter(({ period }) => !period))
    await eventually(
      () => operator('POST', `/api/operations/verify/${name}?top=1000`),
      ({ body }) => body.findings.length === 0,
    );
  expect((await operator('GET', '/api/operations/poison')).body.items).toEqual([]);
});
