import { type Implementations, RowkeyError } from 'rowkey';
import type { model } from './model.ts';

export const operations: Implementations<typeof model> = {
  /** A visitor may read no row, so the store without rules reads them. */
  async report({ input, unlimited }) {
    const project = await unlimited.projects.by.code(input);
    if (!project) throw new RowkeyError('not-found', 'No project has this code.');
    const { ownerId, projectId, name } = project;
    const total = await unlimited.entries.totals.byProject.get({ ownerId, projectId });
    const range = unlimited.entries.range({ ownerId }, { from: projectId, to: projectId });
    return { name, hours: total.sum.hours, entries: await Array.fromAsync(range) };
  },
};
