import { BaseSequencer, type TestSpecification } from 'vitest/node';

const IS_EVERY_POINT = process.env.POINTS === 'all';

/** The files that take longest on two cores. A run that starts one of them late ends late. */
const LONGEST = IS_EVERY_POINT
  ? [
      'init',
      'access-matrix',
      'killing-the-host-in-a-transfer',
      'fanning-out',
      'overtaken-reconcilers',
      'wide-entities',
      'racing-writers-and-messages',
      'archiving-and-moving',
      'surviving-faults',
      'killing-the-host-in-a-write',
      'recovering-from-a-kill',
      'deleting-a-range',
      'recovering-from-an-outage',
      'long-lists',
      'large-series',
      'vertical-split',
      'hostile-rows',
      'putting',
    ]
  : [
      'access-matrix',
      'model/protocol',
      'recovering-from-an-outage',
      'running-on-one-machine',
      'init',
      'importing-and-exporting',
      'operating-from-the-command-line',
      'recovering-from-a-kill',
      'archiving-and-moving',
      'shop',
      'browsing-in-the-console',
      'verifying',
      'wide-entities',
      'killing-the-host-in-a-write',
      'hostile-rows',
      'refusing-to-start',
      'hostile-bodies',
      'fanning-out',
      'killing-the-host-in-a-transfer',
      'slow-storage',
      'hold',
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
