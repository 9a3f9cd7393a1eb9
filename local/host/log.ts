export type LogLevel = 'trace' | 'debug' | 'information' | 'warning' | 'error' | 'critical' | 'none';

/** Levels that the real host does not log by default. */
const QUIET: readonly LogLevel[] = ['trace', 'debug', 'none'];

/** Writes a line of the log. */
type Write = (line: string, level: LogLevel) => void;

let write: Write = (line, level) => {
  (level === 'error' || level === 'critical' ? process.stderr : process.stdout).write(`${line}\n`);
};

/** Writes the log elsewhere than to the outputs of this process. */
export function redirectLog(other: Write) {
  write = other;
}

/** Writes one line; line breaks become ` | `, because the parent process reads line by line. */
export function writeLog(level: LogLevel, source: string, message: string) {
  if (QUIET.includes(level)) return;
  write(`[${level}] ${source} ${message.trim().replace(/\s*\n\s*/g, ' | ')}`, level);
}

/** Includes the stack of an error, if there is one. */
export function formatError(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
