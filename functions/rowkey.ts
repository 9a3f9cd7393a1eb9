import { app } from '@azure/functions';
import { model } from '../lib/model/model.ts';
import { registerFunctions } from '../lib/register-functions.ts';
import { createRowkey } from '../lib/rowkey.ts';
import { fromEnvironment } from '../lib/settings.ts';

export const rowkey = createRowkey({ model, ...fromEnvironment(process.env) });

registerFunctions(app, rowkey, { routePrefix: '' });
