import { readdir, readFile, writeFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants } from 'node:zlib';

/** `.funcignore` leaves files with these endings out of the package, which has their copies. */
export const COMPRESSIBLE = new Set(['.html', '.js', '.css', '.svg', '.json', '.txt']);
/** The highest quality takes ten times as long for a tenth fewer bytes, in every build. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };

/** Writes compressed copies of the files of a folder beside them. All browsers accept Brotli; for other clients, the app decompresses a copy. */
export async function compressFiles(folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && COMPRESSIBLE.has(extname(entry.name)));
  for (const { parentPath, name } of files) {
    const file = join(parentPath, name);
    await writeFile(`${file}.br`, await promisify(brotliCompress)(await readFile(file), BROTLI));
  }
}
