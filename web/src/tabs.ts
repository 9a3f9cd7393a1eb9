import { canRead, canWrite } from './api/model.ts';
import type { EntityTab, EntityTabProps, RowSection, RowSectionProps } from './app/page.ts';
import { BrowseTab } from './entities/browse-tab.tsx';
import { TotalsTab, visibleTotals } from './entities/totals-tab.tsx';
import { hasNewestFirst } from './series/newest-first.ts';
import { lazy } from './ui/lazy.tsx';

/** Tabs of an entity; the first visible one is shown by default. */
export const entityTabs: readonly EntityTab[] = [
  {
    id: 'rows',
    title: 'Rows',
    component: BrowseTab,
    isVisible: (entity, user) => entity.series === undefined && canRead(entity, user),
  },
  {
    id: 'totals',
    title: 'Totals',
    component: TotalsTab,
    isVisible: (entity, user) => canRead(entity, user) && visibleTotals(entity, user).length > 0,
  },
  {
    id: 'chart',
    title: 'Chart',
    component: lazy('the chart', async () => (await import('./series/chart-tab.tsx')).ChartTab),
    isVisible: (entity, user) => entity.series !== undefined && canRead(entity, user),
  },
  {
    id: 'live',
    title: 'Live',
    component: lazy('the log', async () => (await import('./series/live-tab.tsx')).LiveTab),
    isVisible: hasNewestFirst,
  },
  {
    id: 'transfer',
    title: 'Import and export',
    component: lazy('import and export', async () => (await import('./transfer/transfer-tab.tsx')).TransferTab),
    isVisible: (entity, user) => entity.series === undefined && (canRead(entity, user) || canWrite(entity, user)),
  },
  {
    id: 'access',
    title: 'Access',
    component: lazy<EntityTabProps>('who may do what', async () => (await import('./rules/access-tab.tsx')).AccessTab),
    isVisible: () => true,
  },
];

/** Sections of the page of a row. */
export const rowSections: readonly RowSection[] = [
  {
    id: 'files',
    title: 'Files',
    component: lazy<RowSectionProps>('files', async () => (await import('./files/files-section.tsx')).FilesSection),
    isVisible: (entity, user) => Object.keys(entity.attachments).length > 0 && canRead(entity, user),
  },
];
