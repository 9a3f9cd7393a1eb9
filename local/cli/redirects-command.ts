import { Argument, Command, InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { openRegistration } from './call-graph.ts';

const Spa = z.object({ spa: z.object({ redirectUris: z.array(z.string()) }) });

/**
 * Creates the command that adds addresses to those to which Microsoft Entra returns the users of a page. The Azure CLI alone replaces the list,
 * and with it the addresses of other pages and of the console.
 */
export function createRedirectsCommand(): Command {
  return new Command()
    .description('Adds redirect addresses to an app registration, which keeps those that it has.')
    .showHelpAfterError()
    .addArgument(new Argument('<client>', 'the id of the client, or of its registration as an application'))
    .addArgument(new Argument('<addresses...>', 'such as https://app.contoso.com/').argParser(addAddress))
    .action(async (client: string, addresses: readonly string[]) => {
      const registration = openRegistration(client);
      const { spa } = Spa.parse(await registration.read('spa'));
      const redirectUris = [...new Set([...spa.redirectUris, ...addresses])];
      if (redirectUris.length > spa.redirectUris.length) await registration.change({ spa: { redirectUris } });
      for (const address of redirectUris) console.log(address);
    });
}

function addAddress(text: string, before: readonly string[] = []): readonly string[] {
  const { protocol, hostname, hash, href } = URL.parse(text) ?? {};
  const isLocal = protocol === 'http:' && hostname === 'localhost';
  if (href === undefined || hash !== '' || !(protocol === 'https:' || isLocal))
    throw new InvalidArgumentError('An address must begin with https://, or with http://localhost, and have no #.');
  return [...before, text];
}
