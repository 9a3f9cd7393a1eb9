import { createReadStream, createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { createTarDecoder, createTarPacker } from 'modern-tar';

/** A file in a tar file. Each is in memory as a whole: a part of the rows, or a file of a row. */
export interface Member {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Writes a tar file, compressed if its name ends with `.gz`. */
export async function writeTar(
  file: string,
  members: AsyncIterable<Member>,
  { signal, isZipped }: { readonly signal: AbortSignal; readonly isZipped: boolean },
): Promise<void> {
  const { readable, controller } = createTarPacker();
  const source = Readable.fromWeb(readable as Parameters<typeof Readable.fromWeb>[0]);
  const written = isZipped
    ? pipeline(source, createGzip(), createWriteStream(file), { signal })
    : pipeline(source, createWriteStream(file), { signal });
  const pack = async () => {
    try {
      for await (const { name, bytes } of members) {
        const writer = controller.add({ name, size: bytes.byteLength, type: 'file', mode: 0o600 }).getWriter();
        if (bytes.byteLength > 0) await writer.write(bytes);
        await writer.close();
      }
      controller.finalize();
    } catch (error) {
      controller.error(error);
      throw error;
    }
  };
  const [packed, piped] = await Promise.allSettled([pack(), written]);
  // If storage of this machine is full, packing fails because of the write.
  for (const { reason } of [piped, packed].filter((one) => one.status === 'rejected')) throw reason;
}

/** Reads the members of a tar file in their order. `onBytes` is called with the bytes of the file read so far. */
export async function* readTar(file: string, onBytes: (bytes: number) => void = () => {}): AsyncGenerator<Member> {
  const content = createReadStream(file);
  const source = file.endsWith('.gz') ? content.pipe(createGunzip()) : content;
  // The streams of the web tell of another error.
  let failure: unknown;
  const fail = (error: Error) => {
    failure ??= error;
    source.destroy(error);
  };
  content.on('error', fail);
  source.on('error', fail);
  const entries = (Readable.toWeb(source) as ReadableStream<Uint8Array>).pipeThrough(
    createTarDecoder({ strict: true }),
  );
  try {
    for await (const { header, body } of entries) {
      const bytes = new Uint8Array(await new Response(body).arrayBuffer());
      onBytes(content.bytesRead);
      if (header.type === 'file') yield { name: header.name, bytes };
    }
  } catch (error) {
    const cause = failure ?? error;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`The file ${file} cannot be read: ${why.replace(/\.$/, '')}.`);
  } finally {
    content.destroy();
  }
}
