import { afterEach, expect, test, vi } from 'vitest';
import { startProgress } from '../../../local/cli/progress.ts';

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** The output of a test is no terminal. */
function startInPipe(work: Parameters<typeof startProgress>[0]) {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  const said: string[] = [];
  vi.spyOn(console, 'error').mockImplementation((line) => said.push(line));
  return { progress: startProgress(work), said };
}

test('prints the rows, the rate and the time left every ten seconds without a terminal', () => {
  let rows = 500;
  const { progress, said } = startInPipe({ rows: () => rows, describe: () => '2 found', part: () => rows / 10_000 });
  rows = 2_500;
  vi.advanceTimersByTime(9_999);
  expect(said).toEqual([]);
  vi.advanceTimersByTime(1);
  rows = 5_000;
  vi.advanceTimersByTime(20_000);
  progress.stop();
  vi.advanceTimersByTime(60_000);
  expect(said).toEqual([
    '2,500 rows, 2 found, 200 rows/s, about 30 s left…',
    '5,000 rows, 2 found, 225 rows/s, about 20 s left…',
    '5,000 rows, 2 found, 150 rows/s, about 30 s left…',
  ]);
});

test('tells no time left if the whole is not known', () => {
  const { progress, said } = startInPipe({ rows: () => 7 });
  vi.advanceTimersByTime(10_000);
  progress.stop();
  expect(said).toEqual(['7 rows…']);
});

test('counts no wait before the first row in the rate', () => {
  let rows = 0;
  const { progress, said } = startInPipe({ rows: () => rows, describe: () => (rows === 0 ? 'waiting' : 'copying') });
  vi.advanceTimersByTime(40_000);
  rows = 1_000;
  vi.advanceTimersByTime(10_000);
  progress.stop();
  expect(said.slice(-2)).toEqual(['0 rows, waiting…', '1,000 rows, copying, 100 rows/s…']);
});

test('is aborted by the first signal, ignores its repetition by npm, and ends the process at a later one', () => {
  const exit = vi.spyOn(process, 'exit').mockImplementation(() => undefined as never);
  const before = process.listenerCount('SIGINT');
  const { progress, said } = startInPipe({ rows: () => 7 });
  process.emit('SIGINT');
  process.emit('SIGINT');
  expect([progress.signal.aborted, exit.mock.calls]).toEqual([true, []]);
  expect(said).toEqual(['Stopping after the requests in progress; Ctrl-C again stops immediately.']);
  vi.advanceTimersByTime(1_001);
  process.emit('SIGINT');
  expect(exit.mock.calls).toEqual([[130]]);
  expect(process.listenerCount('SIGINT')).toBe(before);
});
