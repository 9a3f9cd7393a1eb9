import { readdir, readFile, writeFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

const COMPRESSIBLE = new Set(['.html', '.js', '.css', '.svg', '.json', '.txt']);
/** A smaller file fits into one packet anyway. */
const MIN_BYTES = 1_400;
/** The highest quality takes ten times as long for a tenth fewer bytes, in every build. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };

/** Writes copies of the files of a folder in Brotli and gzip beside them, which the app serves in place of the files. */
export async function compressFiles(folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && COMPRESSIBLE.has(extname(entry.name)));
  for (const { parentPath, name } of files) {
    const file = join(parentPath, name);
    const bytes = await readFile(file);
    if (bytes.length < MIN_BYTES) continue;
    await writeFile(`${file}.br`, await promisify(brotliCompress)(bytes, BROTLI));
    await writeFile(`${file}.gz`, await promisify(gzip)(bytes, { level: 9 }));
  }
}
