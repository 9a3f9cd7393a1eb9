/**
 * Preloaded into child processes. When the parent ends, even by SIGKILL, the pipe closes and this process sends itself
 * SIGTERM. An orphaned storage emulator would write to the same files as the next one.
 */
process.stdin.on('end', () => process.kill(process.pid, 'SIGTERM')).on('error', () => undefined);
process.stdin.resume();
// This listener must not keep a finished process alive.
if ('unref' in process.stdin) process.stdin.unref();
