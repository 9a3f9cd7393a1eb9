/**
 * How long a test waits for what is to come by itself: moments, and on a busy machine some seconds. The limit is for what
 * never comes, so that being far above what is needed costs nothing.
 */
export const PATIENCE_MS = 120_000;
