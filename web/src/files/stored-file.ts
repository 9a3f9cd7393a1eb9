/** What an entity says of a file. */
export interface StoredFile {
  readonly type: string;
  readonly bytes: number;
}
