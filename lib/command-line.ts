/** local/commands/build-library.ts sets this to true in the package, whose readers have no npm scripts. */
const IS_PACKAGE: boolean = false;

/** Commands that print a value for another command: npm would print its own lines before it. */
const PRINTS_VALUE = new Set(['token', 'secret']);

/** The command that runs the app on this machine. */
export const START_COMMAND = IS_PACKAGE ? 'npx rowkey dev' : 'npm start';

/** The command that a message tells its reader to run. `path` is that of the instance, empty for none. */
export function commandLine(name: string, given = '', path = ''): string {
  const parameters = path === '' ? given : `${given} --path ${path}`;
  if (IS_PACKAGE) return `npx rowkey ${name} ${parameters}`.trim();
  if (PRINTS_VALUE.has(name)) return `npm run -s ${name} -- ${parameters}`;
  return parameters === '' ? `npm run ${name}` : `npm run ${name} -- ${parameters}`;
}
