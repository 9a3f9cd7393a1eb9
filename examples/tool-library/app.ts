import { app } from '@azure/functions';
import { createRowkey, fromEnvironment, registerFunctions } from '../../lib/index.ts';
import { model } from './model.ts';
import { operations } from './operations.ts';

export const rowkey = createRowkey({ model, operations, ...fromEnvironment(process.env) });
registerFunctions(app, rowkey, { routePrefix: '' });
