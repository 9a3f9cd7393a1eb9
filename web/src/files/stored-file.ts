/** The type and size of a file, as its entity stores them. */
export interface StoredFile {
  readonly type: string;
  readonly bytes: number;
}
