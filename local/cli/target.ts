import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { signToken } from '../instance/identity-provider.ts';
import { readInstance } from '../instance/instance.ts';
import { createCommand } from './command.ts';

/** The API that a command calls: that of the local instance, or a remote one. */
export interface Target {
  readonly url: string;
  readonly token: string;
}

export interface TargetOptions {
  readonly data: string;
  readonly url?: string;
  readonly token?: string;
}

const MAX_ATTEMPTS = 6;

/** Creates a command with the options that select the API. */
export function createTargetCommand(description: string): Command {
  return createCommand(description)
    .option('--url <url>', 'the URL of a remote API; default: the local instance')
    .option(
      '--token <token>',
      'the token for the remote API; prefer the variable ROWKEY_TOKEN, which other users cannot see in the process list',
    );
}

/** Throws if no local instance is running, or if a remote API is given without a token. */
export async function resolveTarget(
  { url, token = process.env.ROWKEY_TOKEN, data: folder }: TargetOptions,
  role: string | readonly string[],
): Promise<Target> {
  if (url && token) return { url, token };
  const instance = await readInstance(folder);
  if (!instance)
    throw new Error(
      url
        ? `No token for ${url}: set ROWKEY_TOKEN.`
        : `No instance is running on the data folder ${folder}: run npm start first.`,
    );
  const { issuer, audience } = instance;
  return { url: url ?? instance.url, token: token ?? (await signToken({ folder, issuer, audience, role })) };
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

/** Returns the path of the next page, or undefined after the last. */
export function readNextPage({ headers }: Response): string | undefined {
  return /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];
}
