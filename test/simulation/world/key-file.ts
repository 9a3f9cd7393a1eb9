import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import type { Chance } from './chance.ts';

/** The file of the key-encryption keys of a world, which begins as a copy of another one. */
export function createKeyFile(file: string) {
  const own = `${file}.world`;
  copyFileSync(file, own);
  return {
    file: own,
    /** Adds a key, and makes it the current one. The keys before stay readable. */
    rotate(chance: Chance): void {
      const { keys } = JSON.parse(readFileSync(own, 'utf8')) as { keys: Record<string, string> };
      const current = `key${Object.keys(keys).length}`;
      writeFileSync(
        own,
        JSON.stringify({ current, keys: { ...keys, [current]: chance.bytes(32).toString('base64') } }),
      );
    },
  };
}
