import { createClient } from '../../lib/client/index.ts';
import type { model } from './direct-reads.ts';

/** The client that docs/recipes/direct-reads.md shows. */
export async function printTours(url: string, token: string, driverId: string): Promise<void> {
  const client = createClient<typeof model>({ url, token, direct: ['drivers', 'tours'] });
  for await (const { day } of client.tours.range({ driverId })) console.log(day);
}
