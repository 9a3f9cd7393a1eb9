import { readFileSync } from 'node:fs';
import { metrics, trace } from '@opentelemetry/api';
import { expect, vi } from 'vitest';

/**
 * Runs before each test file: a process runs many files, and each file starts with its own environment and globals. They share their modules,
 * which take a fifth of the processor time to load, but for the files that replace a module or whose instruments keep their first provider.
 */
const kept = globalThis as { hasOwnModules?: boolean };
const hasOwnModules = /vi\.mock\(|countedMetrics|TracerProvider/.test(
  readFileSync(expect.getState().testPath ?? '', 'utf8'),
);
if (hasOwnModules || kept.hasOwnModules) vi.resetModules();
kept.hasOwnModules = hasOwnModules;
vi.unstubAllEnvs();
vi.unstubAllGlobals();
vi.useRealTimers();
// The first provider of a process would stay.
metrics.disable();
trace.disable();
