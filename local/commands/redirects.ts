import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Argument, Command, InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { run } from '../cli/command.ts';

const GRAPH = 'https://graph.microsoft.com/v1.0/applications';
const Registration = z.object({ spa: z.object({ redirectUris: z.array(z.string()) }) });

/**
 * Adds addresses to those to which Microsoft Entra returns the users of a page. The Azure CLI alone replaces the list, and with it the
 * addresses of other pages and of the console.
 */
const program = new Command()
  .description('Adds redirect addresses to an app registration, which keeps those that it has.')
  .showHelpAfterError()
  .addArgument(new Argument('<client>', 'the id of the client, or of its registration as an application'))
  .addArgument(new Argument('<addresses...>', 'such as https://app.contoso.com/').argParser(addAddress))
  .action(async (client: string, addresses: readonly string[]) => {
    const url = `${GRAPH}(appId='${client}')`;
    const { spa } = Registration.parse(JSON.parse(await azure('--method', 'get', '--url', `${url}?$select=spa`)));
    const redirectUris = [...new Set([...spa.redirectUris, ...addresses])];
    const body = JSON.stringify({ spa: { redirectUris } });
    if (redirectUris.length > spa.redirectUris.length)
      await azure('--method', 'patch', '--url', url, '--headers', 'Content-Type=application/json', '--body', body);
    for (const address of redirectUris) console.log(address);
  });

function addAddress(text: string, before: readonly string[] = []): readonly string[] {
  const { protocol, hostname, hash, href } = URL.parse(text) ?? {};
  const isLocal = protocol === 'http:' && hostname === 'localhost';
  if (href === undefined || hash !== '' || !(protocol === 'https:' || isLocal))
    throw new InvalidArgumentError('An address must begin with https://, or with http://localhost, and have no #.');
  return [...before, text];
}

async function azure(...args: readonly string[]): Promise<string> {
  try {
    return (await promisify(execFile)('az', ['rest', ...args])).stdout;
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    throw isMissing ? new Error('The Azure CLI is not installed. Install az and sign in with az login.') : error;
  }
}

await run(program);
