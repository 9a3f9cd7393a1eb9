import { expect, test } from 'vitest';
import { defineModel } from '../../define-model.ts';
import { describeRoutes } from '../../http/openapi.ts';
import { createRoutes } from '../../http/routes.ts';
import { model } from '../model.ts';
import { directory } from './directory.ts';

const alone = defineModel({ roles: ['reader', 'hr', 'operator'], operatorRole: 'operator', entities: [...directory] });

/** Bytes for each operation. */
test.each([
  ['all example packs', describeRoutes(createRoutes(model)), 1_610],
  ['this pack', describeRoutes(createRoutes(alone)), 1_705],
] as const)('the description of the API of %s has a bounded size', (_, described, most) => {
  const count = Object.values<object>(described.paths).flatMap((path) => Object.keys(path)).length;
  expect(JSON.stringify(described).length / count).toBeLessThan(most);
});
