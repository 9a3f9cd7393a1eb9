import { BaseSequencer, type TestSpecification } from 'vitest/node';

const IS_EVERY_POINT = process.env.POINTS === 'all';

/** The files that take longest on two cores, as a run prints them (slowest.ts). A run that starts one of them late ends late. */
const LONGEST = IS_EVERY_POINT
  ? [
      'simulation/simulate',
      'init',
      'access-matrix',
      'killing-the-host-in-a-transfer',
      'move-slots',
      'operations/layers',
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
      'adopting-the-package',
      'package/packages',
      'running-on-one-machine',
      'restarting-on-the-same-ports',
      'alerting',
      'changing-a-key',
      'changing-rows-in-the-console',
      'operating-in-the-console',
      'trying-the-api-in-a-browser',
    ]
  : [
      'simulation/simulate',
      'importing-and-exporting',
      'every-value-by-every-door',
      'access-matrix',
      'running-on-one-machine',
      'browsing-in-the-console',
      'move-slots',
      'operations/layers',
      'operating-from-the-command-line',
      'directory/copies',
      'hostile-rows',
      'infra/compiles',
      'package/packages',
      'directory/directory',
      'model/protocol',
      'refusing-to-start',
      'hostile-bodies',
      'host/main',
      'racing-writers-and-messages',
      'verifying',
      'typed-client-docs',
      'fanning-out-both-ways',
      'storage/storage',
      'hold',
      'operations/verify',
      'slow-storage',
      'archiving-and-moving',
      'timer-listener',
      'overtaken-reconcilers',
      'fanning-out-under-faults',
      'keeping-totals',
      'long-lists',
      'wide-entities-under-faults',
      'large-series',
      'queue-listener',
      'directory/getting-started',
      'retention-under-stress',
      'verify-run',
      'shop/console',
      'tried-faults',
    ];

/**
 * Starts the longest files first; the order of the others is the default. Unit tests come last, because a process runs files of
 * one project only.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification) => {
      if (project.name === 'unit') return LONGEST.length + 1;
      const index = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return index < 0 ? LONGEST.length : index;
    };
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other));
  }
}
