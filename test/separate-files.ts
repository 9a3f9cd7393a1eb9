import { metrics, trace } from '@opentelemetry/api';
import { vi } from 'vitest';

/** Runs before each test file: a process runs many files, and each file starts with its own modules, environment and globals. */
vi.resetModules();
vi.unstubAllEnvs();
vi.unstubAllGlobals();
vi.useRealTimers();
// The first provider of a process would stay.
metrics.disable();
trace.disable();
