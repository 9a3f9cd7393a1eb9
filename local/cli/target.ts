import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { createPace, type Pace } from '../../lib/base/pace.ts';
import { START_COMMAND } from '../../lib/command-line.ts';
import { Problem } from '../../lib/http/problem.ts';
import { rootOf } from '../../lib/http/route.ts';
import { pathError } from '../../lib/http/route-conflicts.ts';
import { retryAfterMs } from '../../lib/storage/load.ts';
import { signToken } from '../instance/identity-provider.ts';
import { readInstance } from '../instance/instance.ts';
import { createCommand } from './command.ts';

/** The API that a command calls: that of the local instance, or a remote one. */
export interface Target {
  readonly url: string;
  /** The beginning of its paths, such as `/api`. */
  readonly root: string;
  readonly token: string;
  /** Adapts the number of concurrent requests to what the API says. */
  readonly pace: Pace;
}

export interface TargetOptions {
  readonly data: string;
  readonly url?: string;
  readonly token?: string;
  readonly path?: string;
}

const MAX_ATTEMPTS = 6;
/** How many requests are sent at first. The API has far more work for each than storage for one of its requests. */
const FIRST_REQUESTS = 4;

/** Creates a command with the options that select the API. */
export function createTargetCommand(description: string): Command {
  return createCommand(description)
    .option('--url <url>', 'the URL of a remote API; default: the local instance')
    .option(
      '--token <token>',
      'the token for the remote API; prefer the variable ROWKEY_TOKEN, which other users cannot see in the process list',
    )
    .option('--path <path>', 'the path of the instance below /api, if it has one', toInstancePath);
}

/** Returns the local instance, with a token of every role, or a remote API. Throws if no instance is running, or if a remote API is given without a token. */
export async function resolveTarget({
  url,
  token = process.env.ROWKEY_TOKEN,
  data: folder,
  path = '',
}: TargetOptions): Promise<Target> {
  const root = rootOf(path);
  const pace = createPace({ first: FIRST_REQUESTS });
  if (url !== undefined) {
    if (!token) throw new Error(`No token for ${url}: set ROWKEY_TOKEN.`);
    return { url: url.replace(/\/+$/, ''), root, token, pace };
  }
  const instance = await readInstance(folder);
  if (!instance)
    throw new Error(
      `No instance is running on the data folder ${folder}: start one with ${START_COMMAND}, or name a remote API with --url.`,
    );
  const { issuer, audience, roles: role } = instance;
  return { url: instance.url, root, token: token ?? (await signToken({ folder, issuer, audience, role })), pace };
}

/** The path is a part of an address and of the name of a bookmark. */
function toInstancePath(path: string): string {
  const error = pathError(path);
  if (error === undefined) return path;
  throw new InvalidArgumentError(error);
}

/**
 * Sends a request, and retries it after a network error, a 429 or a 5xx. A 429 or 503 slows the other requests of the command down, too.
 * Throws after the last attempt.
 */
export async function ask({ url, token, pace }: Target, path: string, request: RequestInit = {}): Promise<Response> {
  const headers = new Headers(request.headers);
  headers.set('authorization', `Bearer ${token}`);
  for (let attempt = 1; ; attempt += 1) {
    const end = await pace.enter('background');
    const response = await fetch(`${url}${path}`, { ...request, headers }).catch(() => undefined);
    const busyForMs = retryAfterMs(response?.headers.get('retry-after'));
    const isBusy = response?.status === 429 || response?.status === 503;
    end(isBusy ? { busyForMs } : undefined);
    if (response && response.status < 500 && response.status !== 429) return response;
    // No other attempt reads what is lost.
    if (response?.status === 503 && (await readProblem(response.clone()))?.code === 'needs-repair') return response;
    if (attempt === MAX_ATTEMPTS)
      throw new Error(
        `${url}${path.split('?')[0]} returned ${response?.status ?? 'nothing'} in ${MAX_ATTEMPTS} attempts: run the command again.`,
      );
    // The pace waits as long as the API demands.
    if (!isBusy || busyForMs === undefined) await sleep(busyForMs ?? 1_000 * attempt);
  }
}

/** Returns undefined for a response that is not from the API, such as that of a proxy. */
export async function readProblem(response: Response): Promise<Problem | undefined> {
  return Problem.safeParse(await response.json().catch(() => undefined)).data;
}

export function formatProblem(problem: Pick<Problem, 'detail' | 'accepted'> | undefined): string {
  if (!problem) return 'the response gives no reason.';
  const { detail, accepted } = problem;
  return accepted ? `${detail} Accepted: ${accepted}.` : detail;
}

/** Returns the path of the next page, or undefined after the last. */
export function readNextPage({ headers }: Response): string | undefined {
  return /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];
}
