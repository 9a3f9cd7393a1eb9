import { randomUUID } from 'node:crypto';
import { Command } from 'commander';
import { z } from 'zod';
import type { Model } from '../../lib/define/define-model.ts';
import { openRegistration } from './call-graph.ts';

/** Whatever else a role has is kept. */
const AppRoles = z.object({ appRoles: z.array(z.looseObject({ value: z.string().nullable() })) });

/**
 * Creates the command that adds the roles of the model to an app registration. A list that the Azure CLI sets replaces the one that there is,
 * and Microsoft Entra rejects the removal of an enabled role.
 */
export function createRolesCommand(loadModel: () => Promise<Model>): Command {
  return new Command()
    .description('Adds the roles of the model to an app registration, which keeps those that it has.')
    .showHelpAfterError()
    .argument('<application>', 'the id of the application that TOKEN_AUDIENCE names')
    .action(async (application: string) => {
      const { roles, signedIn, anyone } = await loadModel();
      const registration = openRegistration(application);
      const { appRoles } = AppRoles.parse(await registration.read('appRoles'));
      const known = new Set(appRoles.map(({ value }) => value));
      // Nobody is given the role of everybody who signs in, or of visitors.
      const missing = roles.filter((role) => !known.has(role) && role !== signedIn && role !== anyone);
      if (missing.length > 0) await registration.change({ appRoles: [...appRoles, ...missing.map(describeRole)] });
      for (const role of missing) console.log(`${role} added.`);
      if (missing.length === 0) console.log('The registration has every role of the model.');
    });
}

function describeRole(role: string): object {
  return {
    id: randomUUID(),
    value: role,
    displayName: role,
    description: role,
    isEnabled: true,
    allowedMemberTypes: ['User', 'Application'],
  };
}
