import { isOperator } from '../api/model.ts';
import type { Page, PageProps } from '../app/page.ts';
import { lazy } from '../ui/lazy.tsx';

const group = 'Operators';
const isVisible: NonNullable<Page['isVisible']> = ({ model, user }) => isOperator(model, user);

/** Few people are operators, so one chunk with all of these pages is loaded at the first of them. */
function page(pattern: string, title: string, name: keyof typeof import('./operator-pages.ts'), isLink = true): Page {
  const component = lazy<PageProps>(title, async () => (await import('./operator-pages.ts'))[name]);
  return { pattern: `operators/${pattern}`, title, component, isVisible, ...(isLink ? { group } : {}) };
}

/** The pages of operators, in the order of the navigation. */
export const operatorPages: readonly Page[] = [
  page('queues', 'Queues', 'QueuesPage'),
  page('failed-messages', 'Failed messages', 'FailedMessagesPage'),
  page('checks', 'Consistency', 'ChecksPage'),
  page('checks/:entity', 'Consistency', 'CheckPage', false),
  page('model', 'Model changes', 'ModelPage'),
  page('periods', 'Period tables', 'PeriodsPage'),
  page('grants', 'Grants', 'GrantsPage'),
  page('usage', 'Usage and cost', 'UsagePage'),
];
