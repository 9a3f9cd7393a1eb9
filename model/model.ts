import { defineModel } from '../lib/define.ts';
import * as entities from './entities.ts';

/** The model of this app: its routes, tables and description follow from it. */
export const model = defineModel({
  roles: ['reader', 'manager', 'hr', 'operator'],
  operatorRole: 'operator',
  entities: Object.values(entities).flat(),
});
