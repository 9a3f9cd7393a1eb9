// Checks the app in its first argument, with what is stored in the data folder in its second one, and sends the result to its parent.
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import { resourcesOf } from '../../lib/operations/resources.ts';
import { checkStored } from '../cli/check-stored.ts';
import { formatError } from '../cli/command.ts';
import { checkApp } from './check-app.ts';
import type { InspectedApp } from './inspect-app.ts';

const [folder = '.', data] = process.argv.slice(2);
const files = new Set<string>();
registerHooks({
  load(url, context, next) {
    if (url.startsWith('file:') && !url.includes('/node_modules/')) files.add(fileURLToPath(url.split('?')[0] ?? url));
    return next(url, context);
  },
});

async function inspect(): Promise<InspectedApp> {
  try {
    const { model } = await checkApp(folder);
    if (data !== undefined) await checkStored(data, model);
    const { prefix, roles, signedIn } = model;
    const { tables, queues, containers } = resourcesOf(model.list, Date.now(), model);
    const app = { prefix, resources: { tables, queues, containers }, roles, signedIn };
    return { files: [...files], app };
  } catch (error) {
    return { files: [...files], problem: formatError(error) };
  }
}

const inspected = await inspect();
process.send?.(inspected, () => process.exit());
