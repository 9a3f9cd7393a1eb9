/** local/commands/build-library.ts sets this to true in the package, whose readers have no npm scripts. */
const IS_PACKAGE: boolean = false;

/** The command that a message tells its reader to run. */
export function commandLine(name: string, parameters = ''): string {
  if (IS_PACKAGE) return `npx rowkey ${name} ${parameters}`.trim();
  return parameters === '' ? `npm run ${name}` : `npm run ${name} -- ${parameters}`;
}
