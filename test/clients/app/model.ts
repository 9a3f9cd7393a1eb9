import { z } from 'zod';
import { defineModel, defineOperation } from '../../../lib/define.ts';
import * as directory from '../../fixtures/directory.ts';
import { categories, movies, products } from '../../fixtures/shop-and-films.ts';

const promote = defineOperation('promote', {
  summary: 'Give an employee a title',
  kind: 'write',
  roles: ['hr'],
  input: z.object({
    department: z.string(),
    employeeId: z.string(),
    jobTitle: z.string(),
    note: z.string().optional(),
  }),
  output: z.object({ jobTitle: z.string(), before: z.string().optional() }),
});

/** Every kind of route, and an operation of the app. */
export const model = defineModel({
  roles: ['reader', 'hr', 'operator'],
  operatorRole: 'operator',
  entities: [...Object.values(directory), movies, categories, products],
  operations: [promote],
});
