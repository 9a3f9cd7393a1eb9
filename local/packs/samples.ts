import { z } from 'zod';
import { deployedApp } from '../instance/deployed-app.ts';
import { importFromPacks } from './pack-modules.ts';

/** A request to the API that creates a part of the sample data. */
const SampleRequest = z.object({
  method: z.enum(['POST', 'PATCH', 'PUT']),
  path: z.string(),
  /** Bytes are sent unchanged, other values as JSON. */
  body: z.union([z.instanceof(Uint8Array<ArrayBuffer>), z.record(z.string(), z.unknown())]),
});
export type SampleRequest = z.infer<typeof SampleRequest>;

/** The exports of a pack's `sample.ts`. */
const SampleModule = z.object({
  sampleRequests: z.custom<(now: number) => unknown>((value) => value instanceof Function),
});
const Steps = z.array(z.array(SampleRequest));

/**
 * The sample data of every pack, in steps. The requests of one step may run concurrently; each step needs the earlier ones.
 * Requests for entities that are not in the model are omitted.
 */
export async function readSamples(now: number): Promise<SampleRequest[][]> {
  const modules = await importFromPacks('sample.ts');
  const steps = modules.flatMap((module) => Steps.parse(SampleModule.parse(module).sampleRequests(now)));
  const isStored = ({ path }: SampleRequest) => deployedApp.model.list.some(({ name }) => name === path.split('/')[0]);
  return steps.map((step) => step.filter(isStored));
}
