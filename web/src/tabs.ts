import { canRead, hasRange } from './api/model.ts';
import type { EntityTab, RowSection } from './app/page.ts';
import { BrowseTab } from './entities/browse-tab.tsx';

/** Tabs of an entity; the first visible one is shown by default. */
export const entityTabs: readonly EntityTab[] = [
  {
    id: 'rows',
    title: 'Rows',
    component: BrowseTab,
    isVisible: (entity, user) => hasRange(entity) && canRead(entity, user),
  },
];

/** Sections of the page of a row. */
export const rowSections: readonly RowSection[] = [];
