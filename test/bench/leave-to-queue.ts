import type { Rowkey } from '../../lib/index.ts';

/** Makes the writers of an instance leave every index entry to the queue. */
export function leaveToQueue<Instance extends Pick<Rowkey, 'runtime'>>(rowkey: Instance): Instance {
  Object.assign(rowkey.runtime.app().engine, { settleInline: 0 });
  return rowkey;
}
