#!/usr/bin/env node
/** The first version that runs TypeScript files of an app as they are. Its imports would fail in an older one, without a reason. */
const OLDEST = [22, 18] as const;

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) {
  const { runProgram } = await import('../cli/program.ts');
  await runProgram();
} else {
  console.error(
    `Rowkey needs Node ${OLDEST.join('.')} or newer, and this is ${process.version}: install one from https://nodejs.org.`,
  );
  process.exitCode = 1;
}
