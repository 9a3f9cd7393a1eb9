import { InvalidArgumentError, Option } from 'commander';
import { createCommand, run } from '../cli/command.ts';
import { deployedApp } from '../instance/deployed-app.ts';
import { signToken } from '../instance/identity-provider.ts';
import { readInstance } from '../instance/instance.ts';

interface Options {
  readonly role: readonly string[];
  readonly email?: string;
  readonly claim: Readonly<Record<string, string>>;
  readonly data: string;
}

/** Prints a token for the running instance and nothing else: `npm run -s token -- --role hr`. */
const program = createCommand('Prints a token for the running instance, valid for eight hours.')
  .addOption(
    new Option('--role <roles>', `the roles of the token, separated by commas: ${deployedApp.model.roles.join(', ')}`)
      .argParser(parseRoles)
      .makeOptionMandatory(),
  )
  .option('--email <address>', 'the same as --claim email=<address>')
  .option('--claim <name=value>', 'a claim of the token; may be repeated', addClaim, {})
  .action(async ({ role, email, claim: claims, data }: Options) => {
    const instance = await readInstance(data);
    if (!instance) throw new Error(`No instance is running on the data folder ${data}: run npm start first.`);
    const { issuer, audience } = instance;
    console.log(await signToken({ folder: data, issuer, audience, role, claims, ...(email ? { email } : {}) }));
  });
await run(program);

/** A repeated option adds its roles to the earlier ones. */
function parseRoles(text: string, before: readonly string[] = []): string[] {
  const roles = text.split(',').map((name) => deployedApp.model.roles.find((role) => role === name.trim()));
  if (roles.some((role) => role === undefined))
    throw new InvalidArgumentError(
      `Allowed roles are ${deployedApp.model.roles.join(', ')}; separate several with commas.`,
    );
  return [...before, ...roles.filter((role) => role !== undefined)];
}

function addClaim(text: string, before: Readonly<Record<string, string>>): Record<string, string> {
  const [, name, value] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new InvalidArgumentError('A claim must be name=value, such as oid=1234.');
  return { ...before, [name]: value };
}
