import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { Problem } from '../../lib/http/problem.ts';

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

/** How a command selects the API that it calls. */
export interface TargetSource {
  /** Creates a command with the options that `resolve` reads. */
  create(description: string): Command;
  resolve(options: TargetOptions): Promise<Target>;
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
