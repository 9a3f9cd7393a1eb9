import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The files that take longest on two cores. A run that starts one of them late ends late. */
const LONGEST = [
  'init',
  'recovering-from-a-kill',
  'killing-the-host-in-a-write',
  'killing-the-host-in-a-transfer',
  'archiving-and-moving',
  'overtaken-reconcilers',
  'running-on-one-machine',
  'importing-and-exporting',
  'racing-writers-and-messages',
  'surviving-faults',
  'recovering-from-an-outage',
  'restarting-on-the-same-ports',
  'refusing-to-start',
  'slow-storage',
  'hold',
  'tried-faults',
];

/** Starts the longest files first; the order of the others is the default. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const index = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return index < 0 ? LONGEST.length : index;
    };
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other));
  }
}
