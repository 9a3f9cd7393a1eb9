import { BaseSequencer, type TestSpecification } from 'vitest/node';

const IS_EVERY_POINT = process.env.POINTS === 'all';

/** The files that take longest on two cores. A run that starts one of them late ends late. */
const LONGEST = IS_EVERY_POINT
  ? [
      'init',
      'access-matrix',
      'killing-the-host-in-a-transfer',
      'fanning-out-under-faults',
      'overtaken-reconcilers',
      'wide-entities-under-faults',
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
      'recovering-from-an-outage',
      'running-on-one-machine',
      'operating-from-the-command-line',
      'importing-and-exporting',
      'recovering-from-a-kill',
      'init',
      'changing-rows-in-the-console',
      'operating-in-the-console',
      'access-matrix',
      'killing-the-host-in-a-transfer',
      'model/protocol',
      'adopting-the-package',
      'archiving-and-moving',
      'shop',
      'verifying',
      'wide-entities-under-faults',
      'hostile-rows',
      'surviving-faults',
      'hostile-bodies',
      'slow-storage',
      'refusing-to-start',
      'restarting-on-the-same-ports',
      'killing-the-host-in-a-write',
      'long-lists',
      'browsing-in-the-console',
      'transfers-in-the-console',
      'directory/console',
      'series-in-the-console',
      'storage/storage',
      'hold',
      'large-series',
      'fanning-out-under-faults',
      'racing-writers-and-messages',
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
