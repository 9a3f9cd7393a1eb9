import crypto from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import files from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers';
import timersPromises from 'node:timers/promises';
import zlib from 'node:zlib';
import { createChance } from './chance.ts';
import {
  currentChance,
  elapsed,
  listenToAbort,
  runOutside,
  timeOfProcess,
  VirtualTimer,
  wait,
} from './virtual-world.ts';

/**
 * Replaces the sources of time and chance by those of `virtual-world.ts`. Load it before everything else, with `--import`: modules
 * keep what they have imported.
 */

type Callback = (...given: unknown[]) => void;
/** Replaced members have the types of the real ones, which no function of this file can state. */
const replace = (target: object, members: Readonly<Record<string, unknown>>) => {
  for (const [name, value] of Object.entries(members))
    Object.defineProperty(target, name, { value, configurable: true, writable: true });
};

const later = (work: Callback, milliseconds?: number, ...given: unknown[]) =>
  new VirtualTimer(() => work(...given), milliseconds);
const repeatedly = (work: Callback, milliseconds?: number, ...given: unknown[]) =>
  new VirtualTimer(() => work(...given), milliseconds, true);
const immediately = (work: Callback, ...given: unknown[]) => new VirtualTimer(() => work(...given));
const close = (timer: unknown) => {
  if (timer instanceof VirtualTimer) timer.close();
};
const timing = {
  setTimeout: later,
  setInterval: repeatedly,
  setImmediate: immediately,
  clearTimeout: close,
  clearInterval: close,
  clearImmediate: close,
};
replace(globalThis, timing);
replace(timers, timing);

interface SleepOptions {
  readonly signal?: AbortSignal;
}
/** As `node:timers/promises`. */
function sleep<Value>(milliseconds?: number, value?: Value, { signal }: SleepOptions = {}): Promise<Value | undefined> {
  const abortError = () =>
    Object.assign(new Error('The operation was aborted'), { name: 'AbortError', cause: signal?.reason });
  if (signal?.aborted) return Promise.reject(abortError());
  return new Promise((resolve, reject) => {
    const stopListening = listenToAbort(signal, () => {
      stopListening();
      timer.close();
      reject(abortError());
    });
    const end = () => {
      stopListening();
      resolve(value);
    };
    const timer = new VirtualTimer(end, milliseconds, false, false);
  });
}
replace(timersPromises, {
  setTimeout: sleep,
  setImmediate: <Value>(value?: Value, options?: SleepOptions) => sleep(0, value, options),
  scheduler: { wait: sleep, yield: () => wait(0) },
});

const RealDate = Date;
const VirtualDate: DateConstructor = new Proxy(RealDate, {
  apply: () => new RealDate(timeOfProcess()).toString(),
  construct: (target, given: unknown[], created): object =>
    Reflect.construct(target, given.length > 0 ? given : [timeOfProcess()], created === VirtualDate ? target : created),
  get: (target, name, receiver) => (name === 'now' ? timeOfProcess : Reflect.get(target, name, receiver)),
});
replace(globalThis, { Date: VirtualDate });
replace(performance, { now: elapsed });
const nanoseconds = () => BigInt(Math.floor(elapsed() * 1e6));
replace(process, {
  hrtime: Object.assign(() => [Math.floor(elapsed() / 1_000), (elapsed() % 1_000) * 1e6], { bigint: nanoseconds }),
});
replace(AbortSignal, {
  timeout(milliseconds: number) {
    const controller = new AbortController();
    const abort = () => controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'));
    new VirtualTimer(abort, milliseconds);
    return controller.signal;
  },
});

const bytes = (count: number) => currentChance().bytes(count);
function fill<View extends ArrayBufferView>(view: View): View {
  new Uint8Array(view.buffer, view.byteOffset, view.byteLength).set(bytes(view.byteLength));
  return view;
}
function uuid(): string {
  const all = bytes(16);
  all[6] = ((all[6] ?? 0) & 0x0f) | 0x40;
  all[8] = ((all[8] ?? 0) & 0x3f) | 0x80;
  const hex = all.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
const randomInt = (least: number, most?: number) =>
  most === undefined ? currentChance().below(least) : least + currentChance().below(most - least);
replace(Math, { random: () => currentChance().next() });
/** Each request to storage is signed. All that a world asks of a signature is that it depends on the key and the text. */
function createHmac(_: string, key: Buffer | string | crypto.KeyObject) {
  const parts: string[] = [String(key)];
  const hmac = {
    update(part: Buffer | string) {
      parts.push(String(part));
      return hmac;
    },
    digest(encoding?: BufferEncoding) {
      const digest = createChance(0, ...parts).bytes(32);
      return encoding ? digest.toString(encoding) : digest;
    },
  };
  return hmac;
}
replace(crypto, { createHmac });
replace(crypto, { randomBytes: bytes, randomUUID: uuid, randomInt, randomFillSync: fill });
replace(globalThis.crypto, { randomUUID: uuid, getRandomValues: fill });

/** The work of other threads ends in any order. */
const { subtle } = globalThis.crypto;
for (const name of ['decrypt', 'deriveBits', 'digest', 'encrypt', 'importKey', 'sign', 'verify'] as const) {
  const work = (subtle[name] as (...given: unknown[]) => Promise<unknown>).bind(subtle);
  replace(subtle, { [name]: (...given: unknown[]) => runOutside(() => work(...given)) });
}
for (const name of ['brotliCompress', 'brotliDecompress', 'gzip', 'gunzip', 'deflate', 'inflate'] as const)
  replace(zlib, {
    [name](data: Buffer, ...given: unknown[]) {
      const done = given.at(-1) as Callback;
      const options = (given.length > 1 ? given[0] : {}) as object;
      let result: readonly unknown[];
      try {
        result = [null, zlib[`${name}Sync`](data, options)];
      } catch (error) {
        result = [error];
      }
      new VirtualTimer(() => done(...result));
    },
  });
const Streams = Object.getPrototypeOf(Object.getPrototypeOf(zlib.Gzip.prototype));
const transform = Streams._transform;
replace(Streams, {
  _transform(this: unknown, chunk: unknown, encoding: unknown, done: Callback) {
    void runOutside(
      () =>
        new Promise<void>((resolve) =>
          transform.call(this, chunk, encoding, (...given: unknown[]) => {
            done(...given);
            resolve();
          }),
        ),
    );
  },
});
/** Keys are in a file, which no other process changes. */
replace(files, {
  readFile: async (path: string, encoding: BufferEncoding) => readFileSync(path, encoding),
  stat: async (path: string) => statSync(path),
});
syncBuiltinESMExports();
