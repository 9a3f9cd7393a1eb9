import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { Problem } from '../../lib/http/problem.ts';
import { rootOf } from '../../lib/http/route.ts';
import { pathError } from '../../lib/http/route-conflicts.ts';
import { signToken } from '../instance/identity-provider.ts';
import { readInstance } from '../instance/instance.ts';
import { createCommand } from './command.ts';

/** The API that a command calls: that of the local instance, or a remote one. */
export interface Target {
  readonly url: string;
  /** The beginning of its paths, such as `/api`. */
  readonly root: string;
  readonly token: string;
}

export interface TargetOptions {
  readonly data: string;
  readonly url?: string;
  readonly token?: string;
  readonly path?: string;
}

const MAX_ATTEMPTS = 6;

/** Creates a command with the options that select the API. */
export function createTargetCommand(description: string): Command {
  return createCommand(description)
    .option('--url <url>', 'the URL of a remote API; default: the local instance, which npm start runs')
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
  if (url !== undefined) {
    if (!token) throw new Error(`No token for ${url}: set ROWKEY_TOKEN.`);
    return { url: url.replace(/\/+$/, ''), root, token };
  }
  const instance = await readInstance(folder);
  if (!instance)
    throw new Error(
      `No instance is running on the data folder ${folder}: start one with npm start of Rowkey, or name a remote API with --url.`,
    );
  const { issuer, audience, roles: role } = instance;
  return { url: instance.url, root, token: token ?? (await signToken({ folder, issuer, audience, role })) };
}

/** The path is a part of an address and of the name of a bookmark. */
function toInstancePath(path: string): string {
  const error = pathError(path);
  if (error === undefined) return path;
  throw new InvalidArgumentError(error);
}

/** Sends a request, and retries it after a network error, a 429 or a 5xx. Throws after the last attempt. */
export async function ask({ url, token }: Target, path: string, request: RequestInit = {}): Promise<Response> {
  const headers = new Headers(request.headers);
  headers.set('authorization', `Bearer ${token}`);
  for (let attempt = 1; ; attempt += 1) {
    const response = await fetch(`${url}${path}`, { ...request, headers }).catch(() => undefined);
    if (response && response.status < 500 && response.status !== 429) return response;
    if (attempt === MAX_ATTEMPTS)
      throw new Error(
        `${url}${path.split('?')[0]} returned ${response?.status ?? 'nothing'} in ${MAX_ATTEMPTS} attempts: run the command again.`,
      );
    await sleep(1_000 * Number(response?.headers.get('retry-after') ?? attempt));
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
