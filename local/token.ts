import { Option } from 'commander';
import { ROLES, type Role } from '../lib/patterns/entity.ts';
import { command, run } from './command.ts';
import { signToken } from './identity-provider.ts';
import { readInstance } from './instance.ts';

interface Options {
  readonly role: Role;
  readonly email?: string;
  readonly data: string;
}

/** Prints a token for the running instance and nothing else: `npm run -s token -- --role hr`. */
const program = command('Prints a token of eight hours for the running instance.')
  .addOption(new Option('--role <role>', 'what the token allows').choices(ROLES).makeOptionMandatory())
  .option('--email <address>', 'whose token it is; without it, nobody in particular')
  .action(async ({ role, email, data }: Options) => {
    const instance = await readInstance(data);
    if (!instance) throw new Error(`Nothing runs on the data folder ${data}: run npm start first.`);
    const { issuer, audience } = instance;
    console.log(await signToken({ folder: data, issuer, audience, role, ...(email ? { email } : {}) }));
  });
await run(program);
