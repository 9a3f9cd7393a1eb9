/** Wraps and unwraps data keys with a key-encryption key that never leaves its store. */
export interface KeyRing {
  /** Wraps a data key of 32 bytes with the current key, and returns its id. */
  wrap(dataKey: Uint8Array): Promise<WrappedKey>;
  /**
   * Unwraps with the key `keyId`, which may be an earlier one. Throws `wrong-setting` if the ring does not have the key,
   * `storage-unavailable` if the key store is unreachable, and UnwrapFailed if another key has wrapped the bytes.
   */
  unwrap(keyId: string, wrapped: Uint8Array): Promise<Uint8Array>;
  /** The id of the current key. */
  currentKeyId(): Promise<string>;
}

interface WrappedKey {
  readonly keyId: string;
  readonly wrapped: Uint8Array;
}

/** The wrapped bytes were changed, or another key has wrapped them. */
export class UnwrapFailed extends Error {
  constructor(cause?: unknown) {
    super('The data key cannot be unwrapped: it was changed, or another key has wrapped it.', { cause });
    this.name = 'UnwrapFailed';
  }
}
