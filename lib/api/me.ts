import { z } from 'zod';
import { claimsThatDecide } from '../access/token.ts';
import { RowkeyError } from '../base/errors.ts';
import type { LinkedModel } from '../define/define-model.ts';
import type { Operation } from './operation.ts';

const Me = z.object({
  subject: z.string().describe('The `sub` of the token; empty without a token'),
  roles: z.array(z.string()).readonly().describe('Those of the model'),
  claims: z
    .record(z.string(), z.union([z.string(), z.array(z.string()).readonly()]))
    .describe('Those that the model compares, if they are verified'),
});
export type Me = z.infer<typeof Me>;

/** Who the caller is, as the app understands the token, so that no page decodes one. */
export function me(model: LinkedModel): Operation<undefined, Me> {
  const names = new Set(claimsThatDecide(model).map(({ claim }) => claim));
  return {
    name: 'me',
    summary: 'Get the subject, the roles and the claims of the token that the app uses',
    kind: 'read',
    roles: model.roles,
    output: () => Me,
    async run({ caller }) {
      if (!caller) throw new RowkeyError('forbidden', 'The app itself is no caller.');
      const { subject, roles, claims } = caller;
      return { subject, roles, claims: Object.fromEntries(Object.entries(claims).filter(([name]) => names.has(name))) };
    },
  };
}
