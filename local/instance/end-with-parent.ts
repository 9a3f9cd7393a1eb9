/**
 * Preloaded into the processes that another one starts: when that one is gone, however it ended, its end of the pipe
 * closes, and this process stops as it would at SIGTERM. A storage emulator left behind would write to the same files
 * as the next.
 */
process.stdin.on('end', () => process.kill(process.pid, 'SIGTERM')).on('error', () => undefined);
process.stdin.resume();
// Listening must not keep a process alive that has come to its own end.
if ('unref' in process.stdin) process.stdin.unref();
