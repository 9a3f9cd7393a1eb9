import { canRead } from './api/model.ts';
import type { EntityTab, RowSection } from './app/page.ts';
import { BrowseTab } from './entities/browse-tab.tsx';
import { TotalsTab, visibleTotals } from './entities/totals-tab.tsx';

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
];

/** Sections of the page of a row. */
export const rowSections: readonly RowSection[] = [];
