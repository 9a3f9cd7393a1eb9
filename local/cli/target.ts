import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { signToken } from '../instance/identity-provider.ts';
import { readInstance } from '../instance/instance.ts';
import { createCommand } from './command.ts';

/** The API that a command works with: of the local instance, or one elsewhere. */
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

/** A command line that names such an API. */
export function createTargetCommand(description: string): Command {
  return createCommand(description)
    .option('--url <url>', 'the URL of an API elsewhere; the local instance by default')
    .option(
      '--token <token>',
      'for that API; the variable ROWKEY_TOKEN is better, as it shows in no list of processes',
    );
}

/** Throws one sentence where nothing runs, or where a token is lacking. */
export async function resolveTarget(
  { url, token = process.env.ROWKEY_TOKEN, data: folder }: TargetOptions,
  role: string | readonly string[],
): Promise<Target> {
  if (url && token) return { url, token };
  const instance = await readInstance(folder);
  if (!instance)
    throw new Error(
      url ? 'A token is needed: set ROWKEY_TOKEN.' : `Nothing runs on the data folder ${folder}: run npm start first.`,
    );
  const { issuer, audience } = instance;
  return { url: url ?? instance.url, token: token ?? (await signToken({ folder, issuer, audience, role })) };
}

/** Asks the API, over again while it does not answer or is busy. Throws one sentence where that does not end. */
export async function ask({ url, token }: Target, path: string, request: RequestInit = {}): Promise<Response> {
  const headers = new Headers(request.headers);
  headers.set('authorization', `Bearer ${token}`);
  for (let attempt = 1; ; attempt += 1) {
    const response = await fetch(`${url}${path}`, { ...request, headers }).catch(() => undefined);
    if (response && response.status < 500 && response.status !== 429) return response;
    if (attempt === MAX_ATTEMPTS)
      throw new Error(`${url}${path.split('?')[0]} answered ${response?.status ?? 'nothing'}: run this again.`);
    await sleep(1_000 * Number(response?.headers.get('retry-after') ?? attempt));
  }
}

/** The path of the next page, where an answer names one. */
export function readNextPage({ headers }: Response): string | undefined {
  return /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];
}
