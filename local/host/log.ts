export type LogLevel = 'trace' | 'debug' | 'information' | 'warning' | 'error' | 'critical' | 'none';

/** Levels that the real host does not log by default. */
const QUIET: readonly LogLevel[] = ['trace', 'debug', 'none'];

/** Writes one line; line breaks become ` | `, because the parent process reads line by line. */
export function writeLog(level: LogLevel, source: string, message: string) {
  if (QUIET.includes(level)) return;
  const line = `[${level}] ${source} ${message.trim().replace(/\s*\n\s*/g, ' | ')}\n`;
  (level === 'error' || level === 'critical' ? process.stderr : process.stdout).write(line);
}

/** Includes the stack of an error, if there is one. */
export function formatError(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
