import { type Command, InvalidArgumentError } from 'commander';
import { signToken } from '../instance/identity-provider.ts';
import { requireInstance } from '../instance/instance.ts';
import { createCommand } from './command.ts';

type Claims = Readonly<Record<string, string | readonly string[]>>;

interface Options {
  readonly role: readonly string[];
  readonly email?: string;
  readonly claim: Claims;
  readonly data: string;
}

/** Creates the command that prints a token for the running instance and nothing else: `npm run -s token -- --role hr`. */
export function createTokenCommand(): Command {
  return createCommand('Prints a token for the running instance, valid for eight hours.')
    .option(
      '--role <roles>',
      'the roles of the token, separated by commas; may be repeated. None by default, as of a user who signs up',
      addRoles,
      [],
    )
    .option('--email <address>', 'the same as --claim email=<address>')
    .option(
      '--claim <name=value>',
      'a claim of the token, such as sub=ann; may be repeated, of one name for a list',
      addClaim,
      {},
    )
    .action(async ({ role, email, claim: claims, data }: Options) => {
      const { issuer, audience, roles } = await requireInstance(data);
      if (role.some((name) => !roles.includes(name)))
        throw new Error(`Allowed roles are ${roles.join(', ')}; separate several with commas.`);
      console.log(await signToken({ folder: data, issuer, audience, role, claims, ...(email ? { email } : {}) }));
    });
}

function addRoles(text: string, before: readonly string[] = []): string[] {
  return [...before, ...text.split(',').map((name) => name.trim())];
}

function addClaim(text: string, before: Claims): Claims {
  const [, name, value] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new InvalidArgumentError('A claim must be name=value, such as oid=1234.');
  const known = before[name];
  return { ...before, [name]: known === undefined ? value : [known, value].flat() };
}
