import type { Page } from '../app/page.ts';

/** The pages of operators, in the order of the navigation. */
export const operatorPages: readonly Page[] = [];
