import { app } from '@azure/functions';
import { registerFunctions } from '../../lib/register-functions.ts';
import { createRowkey } from '../../lib/rowkey.ts';
import { fromEnvironment } from '../../lib/settings.ts';
import { model } from './model.ts';

registerFunctions(app, createRowkey({ model, ...fromEnvironment(process.env) }), { routePrefix: '' });
