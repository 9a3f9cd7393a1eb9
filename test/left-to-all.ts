/**
 * The files that start processes or browsers, need the emulator, send each request as each role, or take a fixed time, and so take longest.
 * `npm test` leaves them to `npm run test:storage`.
 */
const LEFT = [
  'examples/directory/changing-a-key',
  'examples/directory/console',
  'examples/directory/copies',
  'examples/directory/first-minute-in-the-console',
  'examples/directory/getting-started',
  'examples/groups/console',
  'examples/groups/page',
  'examples/shop/console',
  'examples/tool-library/page',
  'test/infra/compiles',
  'test/lib/define/compiler-errors',
  'test/local/commands/help',
  'test/local/commands/init',
  'test/local/commands/smoke',
  'test/local/commands/walk',
  'test/local/host/main',
  'test/local/host/queue-listener',
  'test/protocol/killing-the-host-in-a-transfer',
  'test/protocol/killing-the-host-in-a-write',
  'test/protocol/moving-beside-walks',
  'test/protocol/wide-entities-under-faults',
  'test/scenarios/access-matrix',
  'test/scenarios/adopting-the-package',
  'test/scenarios/alerting',
  'test/scenarios/browsing-in-the-console',
  'test/scenarios/changing-rows-in-the-console',
  'test/scenarios/files-in-the-console',
  'test/scenarios/generated-client',
  'test/scenarios/hostile-rows',
  'test/scenarios/operating-from-the-command-line',
  'test/scenarios/operating-in-the-console',
  'test/scenarios/recovering-from-a-kill',
  'test/scenarios/recovering-from-an-outage',
  'test/scenarios/refusing-to-start',
  'test/scenarios/running-on-one-machine',
  'test/scenarios/running-with-a-prefix',
  'test/scenarios/series-in-the-console',
  'test/scenarios/serving-a-browser',
  'test/scenarios/transfers-in-the-console',
  'test/scenarios/trying-the-api-in-a-browser',
  'test/scenarios/tracing-a-write',
  'test/scenarios/typed-client-docs',
  'test/storage-contract/blobs',
  'test/storage-contract/queues',
  'test/storage-contract/tables',
].map((path) => `${path}.test.ts`);

/** True if `npm test` does not run the file. */
export function isLeftToAll(file: string): boolean {
  return LEFT.includes(file);
}

/** The files whose cases have a command, which a workflow runs each night. Other runs take a sample of them, and `npm run test:all` none. */
const NIGHTLY = ['test/doors/every-value-by-every-door', 'test/protocol/injecting'].map((path) => `${path}.test.ts`);

/** True if `npm run test:all` leaves the file to a command of its own. */
export function isNightly(file: string): boolean {
  return NIGHTLY.includes(file);
}
