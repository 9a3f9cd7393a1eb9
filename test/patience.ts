/**
 * How long a test waits for an event that takes moments, or some seconds on a busy machine. Only an event that never
 * happens reaches the limit, so a generous one costs nothing.
 */
export const PATIENCE_MS = 120_000;
