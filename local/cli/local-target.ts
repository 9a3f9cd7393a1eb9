import type { Command } from 'commander';
import { deployedApp } from '../instance/deployed-app.ts';
import { signToken } from '../instance/identity-provider.ts';
import { readInstance } from '../instance/instance.ts';
import { createCommand } from './command.ts';
import type { Target, TargetOptions, TargetSource } from './target.ts';

/** Creates a command with the options that select the API. */
export function createTargetCommand(description: string): Command {
  return createCommand(description)
    .option('--url <url>', 'the URL of a remote API; default: the local instance')
    .option(
      '--token <token>',
      'the token for the remote API; prefer the variable ROWKEY_TOKEN, which other users cannot see in the process list',
    );
}

/** Returns the local instance, with a token of every role, or a remote API. Throws if no instance is running, or if a remote API is given without a token. */
export async function resolveTarget({
  url,
  token = process.env.ROWKEY_TOKEN,
  data: folder,
}: TargetOptions): Promise<Target> {
  if (url && token) return { url, token };
  const instance = await readInstance(folder);
  if (!instance)
    throw new Error(
      url
        ? `No token for ${url}: set ROWKEY_TOKEN.`
        : `No instance is running on the data folder ${folder}: run npm start first.`,
    );
  const { issuer, audience } = instance;
  const { roles: role } = deployedApp.model;
  return { url: url ?? instance.url, token: token ?? (await signToken({ folder, issuer, audience, role })) };
}

export const localTarget: TargetSource = { create: createTargetCommand, resolve: resolveTarget };
