/** The files that test the product as a whole, or for a fixed time, and take longest. `npm test` leaves them to `npm run test:storage`. */
const LEFT = [
  'examples/directory/changing-a-key',
  'examples/directory/console',
  'examples/directory/first-minute-in-the-console',
  'test/local/commands/init',
  'test/protocol/moving-beside-walks',
  'test/scenarios/adopting-the-package',
  'test/scenarios/alerting',
  'test/scenarios/changing-rows-in-the-console',
  'test/scenarios/files-in-the-console',
  'test/scenarios/operating-in-the-console',
  'test/scenarios/recovering-from-a-kill',
  'test/scenarios/recovering-from-an-outage',
  'test/scenarios/series-in-the-console',
  'test/scenarios/transfers-in-the-console',
  'test/scenarios/trying-the-api-in-a-browser',
].map((path) => `${path}.test.ts`);

/** True if `npm test` does not run the file. */
export function isLeftToAll(file: string): boolean {
  return LEFT.includes(file);
}

/** The files whose cases have a command, which a workflow runs each night. `npm test` takes a sample of them, and `npm run test:all` none. */
const NIGHTLY = ['test/doors/every-value-by-every-door', 'test/protocol/injecting'].map((path) => `${path}.test.ts`);

/** True if other runs than `npm test` leave the file to a command of its own. */
export function isNightly(file: string): boolean {
  return NIGHTLY.includes(file);
}
