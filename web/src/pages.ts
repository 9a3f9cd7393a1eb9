import { HomePage } from './app/home-page.tsx';
import type { Page } from './app/page.ts';
import { EntityPage } from './entities/entity-page.tsx';
import { CreatePage } from './forms/create-page.tsx';
import { operatorPages } from './operators/pages.ts';
import { RowPage } from './rows/row-page.tsx';

/** The pages of the console. web/README.md says how to add one. */
export const pages: readonly Page[] = [
  { pattern: '', title: 'Overview', component: HomePage },
  { pattern: 'entities/:entity/rows/*', title: 'Row', component: RowPage },
  { pattern: 'entities/:entity/new', title: 'New row', component: CreatePage },
  { pattern: 'entities/:entity', title: '', component: EntityPage },
  { pattern: 'entities/:entity/:tab', title: '', component: EntityPage },
  ...operatorPages,
];
