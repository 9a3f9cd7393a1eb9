import { z } from 'zod';
import { requireUnblocked } from '../access/blocked.ts';
import { requireWholeReader } from '../access/rule.ts';
import { Decision, explainDecision } from '../access/why.ts';
import { RowkeyError } from '../base/errors.ts';
import type { Values } from '../base/values.ts';
import { declaredIn } from '../define/declaration/access.ts';
import { type Entity, withArchives } from '../define/declaration/entity.ts';
import type { LinkedModel } from '../define/define-model.ts';
import { readEntity } from '../engine/read/retrieve.ts';
import { hiddenIn } from './open.ts';
import type { Operation } from './operation.ts';
import { checkFields } from './reads.ts';

/** Why a caller may do something with a row, or may not: for operators, who type in the caller. */

export const WhyQuestion = z.strictObject({
  entity: z.string().describe('An entity of the model'),
  key: z.record(z.string(), z.unknown()),
  caller: z.strictObject({
    subject: z.string().min(1).describe('The `sub` of the token'),
    roles: z.array(z.string()).default([]),
    claims: z
      .record(z.string(), z.union([z.string(), z.array(z.string())]))
      .default({})
      .describe('As verified claims of the token'),
  }),
});

const WhyAnswer = Decision.extend({
  hidden: z.array(z.string()).describe('The fields of the row that the caller may not see'),
});

interface WhyInput {
  readonly entity: Entity;
  readonly key: Values;
  readonly caller: z.infer<typeof WhyQuestion>['caller'];
}

/** Decides as a request of that caller does. Throws `not-found`. */
export function why({
  operatorRole,
  blocksUsers,
}: Pick<LinkedModel, 'operatorRole' | 'blocksUsers'>): Operation<WhyInput, z.infer<typeof WhyAnswer>> {
  return {
    name: 'operations-why',
    summary:
      'Explain what a caller may do with a row, and which alternative and term of the rules decides; requires roles that may read every row of the entity, and of those in its rules, with all fields',
    kind: 'read',
    entityOf: ({ entity }) => entity,
    roles: [operatorRole],
    input: () => WhyQuestion,
    output: () => WhyAnswer,
    // The answer tells values of the row, and the memberships of anybody.
    admit(caller, { entity }) {
      for (const each of new Set([entity, ...declaredIn(entity.access)])) requireWholeReader(each, caller);
    },
    async run({ engine }, { entity, key, caller }) {
      const { values } = await readEntity(engine, entity, key, { select: comparedBy(entity) });
      const decision = await explainDecision({ engine, caller, entity, values }, async () => {
        if (blocksUsers) await requireUnblocked(engine, caller);
      });
      const hidden = await hiddenIn({ engine, caller, isLastAttempt: true }, entity, values);
      return { ...decision, hidden: [...hidden] };
    },
  };
}

function comparedBy({ access: { rules, unveiled = {} }, keyFields }: Entity): string[] {
  const all = [...Object.values(rules ?? {}), ...Object.values(unveiled)].flat();
  return [...new Set([...keyFields, ...all.flatMap(({ where = {} }) => Object.keys(where))])];
}

/** Throws `invalid-input`. */
export function readQuestion(entities: readonly Entity[], question: z.infer<typeof WhyQuestion>): WhyInput {
  const all = withArchives(entities).filter(({ series }) => !series);
  const entity = all.find(({ name }) => name === question.entity);
  if (!entity)
    throw new RowkeyError('invalid-input', '"entity" names no entity with single rows.', {
      field: 'entity',
      accepted: all.map(({ name }) => name).join(', '),
    });
  return { entity, key: checkFields(entity, question.key, entity.keyFields), caller: question.caller };
}
