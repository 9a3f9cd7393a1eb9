import { MultiBar, type Options, Presets } from 'cli-progress';

/** Without a terminal, a line is printed this often. */
const LINE_EVERY_MS = 10_000;
/** npm sends Ctrl-C to its child once more, so a signal that follows the first one immediately is the same one. */
const SAME_SIGNAL_MS = 1_000;
export const INTERRUPTED_EXIT_CODE = 130;

interface Work {
  /** The rows that are done so far. */
  readonly rows: () => number;
  /** What is done besides, such as `12 files`. */
  readonly describe?: () => string;
  /** The part that is done, from 0 to 1, if the whole is known. */
  readonly part?: () => number;
}

interface Progress {
  /** Aborted by the first Ctrl-C, so that the command ends in order. A later one ends the process. */
  readonly signal: AbortSignal;
  /** Prints a line above the progress. */
  say(text: string): void;
  stop(): void;
}

/** Shows the progress of a command on standard error: on a terminal in one line that is drawn again, else line by line. */
export function startProgress(work: Work): Progress {
  const describe = describer(work);
  const display = process.stderr.isTTY ? drawLine(work, describe) : printLines(describe);
  const interruption = new AbortController();
  let interruptedAt = 0;
  const onSignal = () => {
    if (!interruption.signal.aborted) {
      interruptedAt = performance.now();
      display.say('Stopping after the requests in progress; Ctrl-C again stops immediately.');
      interruption.abort();
    } else if (performance.now() - interruptedAt > SAME_SIGNAL_MS) {
      stop();
      process.exit(INTERRUPTED_EXIT_CODE);
    }
  };
  const stop = () => {
    process.off('SIGINT', onSignal);
    display.stop();
  };
  process.on('SIGINT', onSignal);
  return { signal: interruption.signal, say: display.say, stop };
}

/** Returns a function that describes the work: its rows, their rate, and the time left. Work may wait before its first row. */
function describer({ rows, describe, part }: Work): () => string {
  const before = rows();
  let since = performance.now();
  return () => {
    const count = rows() - before;
    if (count === 0) since = performance.now();
    const seconds = (performance.now() - since) / 1_000;
    const rate = count === 0 ? [] : [`${format(Math.round(count / Math.max(seconds, 1)))} rows/s`];
    const words = [`${format(rows())} rows`, ...(describe ? [describe()] : []), ...rate];
    const done = part?.() ?? 0;
    if (count > 0 && done > 0 && done < 1) words.push(`about ${formatTime((seconds * (1 - done)) / done)} left`);
    return words.join(', ');
  };
}

function drawLine({ part }: Work, describe: () => string): Omit<Progress, 'signal'> {
  const options: Options = {
    format: part ? '{bar} {percentage} % {text}' : '{text}',
    // Keeps the terminal wrapping lines, even if this process is killed. A long line is cut.
    linewrap: true,
    clearOnComplete: true,
    // Without it, a line above the progress would stay on top of the text, which has not changed.
    forceRedraw: true,
    barsize: 20,
  };
  const bars = new MultiBar(options, Presets.shades_classic);
  const bar = bars.create(1, 0, { text: describe() });
  bars.on('update-pre', () => bar.update(part?.() ?? 0, { text: describe() }));
  return {
    say: (text) => bars.log(`${text}\n`),
    stop() {
      // Prints the lines that wait.
      bars.update();
      bars.stop();
    },
  };
}

function printLines(describe: () => string): Omit<Progress, 'signal'> {
  const timer = setInterval(() => console.error(`${describe()}…`), LINE_EVERY_MS).unref();
  return { say: (text) => console.error(text), stop: () => clearInterval(timer) };
}

function format(value: number): string {
  return value.toLocaleString('en-US');
}

function formatTime(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
