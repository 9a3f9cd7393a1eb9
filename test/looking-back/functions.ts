import { fileURLToPath } from 'node:url';
import { app } from '@azure/functions';
import { createRowkey, fromEnvironment, registerFunctions } from '../../lib/index.ts';
import { model } from './model.ts';

registerFunctions(app, createRowkey({ model, ...fromEnvironment(process.env) }), {
  routePrefix: '',
  consoleFolder: fileURLToPath(new URL('../console', import.meta.url)),
});
