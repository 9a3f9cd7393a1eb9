import { cancel, isCancel, select, text } from '@clack/prompts';
import { checkName, PAGES, type Page } from './create-app.ts';

export const DEFAULT_NAME = 'hours';
export const DEFAULT_PAGE: Page = 'plain';
export const PAGE_NAMES = Object.keys(PAGES) as Page[];

export interface Answers {
  readonly name: string;
  readonly page: Page;
}

/** Asks in a terminal for what is not given. Returns undefined if the user ends the questions. */
export async function ask(
  given: Partial<Answers>,
  streams: Pick<Parameters<typeof text>[0], 'input' | 'output'> = {},
): Promise<Answers | undefined> {
  const name =
    given.name ??
    (await text({
      ...streams,
      message: 'What is the name of the app?',
      initialValue: DEFAULT_NAME,
      validate: (value = '') => checkName(value),
    }));
  const options = PAGE_NAMES.map((value) => ({ value, label: value, hint: PAGES[value] }));
  const page = isCancel(name)
    ? name
    : (given.page ?? (await select({ ...streams, message: 'Which page does the app get?', options })));
  if (!isCancel(name) && !isCancel(page)) return { name, page };
  cancel('Nothing was written.', streams);
  return undefined;
}
