/** local/commands/build-library.ts sets this to true in the package, whose readers have no npm scripts. */
const IS_PACKAGE: boolean = false;

/** The command that a message tells its reader to run. `path` is that of the instance, empty for none. */
export function commandLine(name: string, given = '', path = ''): string {
  const parameters = path === '' ? given : `${given} --path ${path}`;
  if (IS_PACKAGE) return `npx rowkey ${name} ${parameters}`.trim();
  return parameters === '' ? `npm run ${name}` : `npm run ${name} -- ${parameters}`;
}
