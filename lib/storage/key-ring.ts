/** Wraps and unwraps data keys with a key-encryption key that never leaves where it is kept. */
export interface KeyRing {
  /** Wraps a data key of 32 bytes with the current key; `keyId` says which that was. */
  wrap(dataKey: Uint8Array): Promise<WrappedKey>;
  /**
   * Unwraps with the key that wrapped it, be it current or an earlier one. Throws `wrong-setting` for a key that this
   * ring does not have, `storage-unavailable` when what keeps the keys does not answer, and UnwrapFailed when the bytes
   * are not what that key has wrapped.
   */
  unwrap(keyId: string, wrapped: Uint8Array): Promise<Uint8Array>;
  /** The id of the key that `wrap` uses now. */
  currentKeyId(): Promise<string>;
}

export interface WrappedKey {
  readonly keyId: string;
  readonly wrapped: Uint8Array;
}

/** The wrapped bytes have been changed, or another key has wrapped them. */
export class UnwrapFailed extends Error {
  constructor(cause?: unknown) {
    super('The data key does not unwrap.', { cause });
    this.name = 'UnwrapFailed';
  }
}
