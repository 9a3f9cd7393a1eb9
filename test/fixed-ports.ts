import { randomInt } from 'node:crypto';
import { isFree, type Ports } from '../local/instance/ports.ts';

/**
 * Below the ports that operating systems give to whoever asks for any free one. Those may belong to another process of the run
 * before a stopped part starts again, as may the usual ports of an instance.
 */
const [FIRST, LAST] = [20_000, 32_000];

/** Returns ports for an instance that is stopped and started again on the same ports. */
export async function chooseFixedPorts(): Promise<Ports> {
  for (;;) {
    const first = randomInt(FIRST, LAST);
    const [api, identity, blob, queue, table] = [first, first + 1, first + 2, first + 3, first + 4];
    const areFree = await Promise.all([api, identity, blob, queue, table].map(isFree));
    if (areFree.every(Boolean)) return { api, identity, blob, queue, table };
  }
}
