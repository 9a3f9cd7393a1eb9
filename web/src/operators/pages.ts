import { isOperator, type Model } from '../api/model.ts';
import type { Page, PageProps } from '../app/page.ts';
import { lazy } from '../ui/lazy.tsx';

const group = 'Operators';

interface Options {
  readonly isLink?: boolean;
  readonly isUsed?: (model: Model) => boolean;
}

/** Few people are operators, so one chunk with all of these pages is loaded at the first of them. */
function page(
  pattern: string,
  title: string,
  name: keyof typeof import('./operator-pages.ts'),
  options: Options = {},
): Page {
  const component = lazy<PageProps>(title, async () => (await import('./operator-pages.ts'))[name]);
  const { isLink = true, isUsed = () => true } = options;
  const isVisible: Page['isVisible'] = ({ model, user }) => isOperator(model, user) && isUsed(model);
  return { pattern: `operators/${pattern}`, title, component, isVisible, ...(isLink ? { group } : {}) };
}

/** True if the app has the routes of grants, which archives of periods use, too. */
function hasGrants({ entities }: Model): boolean {
  return [...entities.values()].some(
    ({ access, attachments, period }) => access.own || Object.keys(attachments).length > 0 || period?.archiveTo,
  );
}

/** The pages of operators, in the order of the navigation. */
export const operatorPages: readonly Page[] = [
  page('queues', 'Queues', 'QueuesPage'),
  page('failed-messages', 'Failed messages', 'FailedMessagesPage'),
  page('checks', 'Consistency', 'ChecksPage'),
  page('checks/:entity', 'Consistency', 'CheckPage', { isLink: false }),
  page('backup', 'Backup', 'BackupPage'),
  page('audit', 'Audit log', 'AuditPage', { isUsed: ({ backup }) => backup !== undefined }),
  page('model', 'Model changes', 'ModelPage'),
  page('indexes', 'Index reads', 'IndexesPage'),
  page('periods', 'Period tables', 'PeriodsPage'),
  page('grants', 'Grants', 'GrantsPage', { isUsed: hasGrants }),
  page('users', 'Users', 'UsersPage', { isUsed: ({ blocksUsers, erasesUsers }) => blocksUsers || erasesUsers }),
  page('heat', 'Hot partitions', 'HeatPage'),
  page('accounts', 'Storage accounts', 'AccountsPage'),
  page('usage', 'Usage and cost', 'UsagePage'),
];
