import { fileURLToPath } from 'node:url';
import { buildApp } from '../package/build-app.ts';
import { buildConsole } from '../package/build-console.ts';

// The only app of the repository: functions/ as dist/app.js.
await buildApp({ folder: fileURLToPath(new URL('../../dist', import.meta.url)) });
await buildConsole();
