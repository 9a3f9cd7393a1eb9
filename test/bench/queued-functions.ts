import { app } from '@azure/functions';
import { createRowkey, fromEnvironment, registerFunctions } from '../../lib/index.ts';
import { model } from '../fixtures/model.ts';
import { leaveToQueue } from './leave-to-queue.ts';

/** The fixtures' app, whose writers leave every index entry to the queue. */
registerFunctions(app, leaveToQueue(createRowkey({ model, ...fromEnvironment(process.env) })), { routePrefix: '' });
