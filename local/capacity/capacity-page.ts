import { createPlanCommand } from './plan-command.ts';
import { readPublished } from './published.ts';
import { formatSmallApps } from './small-apps.ts';

export const CAPACITY_PAGE = 'docs/capacity.md';
export const COSTS_PAGE = 'docs/costs.md';
const COSTS = /(<!-- costs -->\n)[\s\S]*?(<!-- \/costs -->)/;
/** A plan on the page, with the arguments of its command. */
const PLAN = /(<!-- capacity: (.+) -->\n)[\s\S]*?(<!-- \/capacity -->)/g;

/** Returns the page with its plans as they are now. */
export async function updatePlans(page: string): Promise<string> {
  const plans: string[] = [];
  for (const [, , words = ''] of page.matchAll(PLAN))
    await createPlanCommand((plan) => plans.push(plan)).parseAsync(words.split(' '), { from: 'user' });
  return page.replaceAll(PLAN, (_, begin: string, words: string, end: string) => {
    return `${begin}\n\`npm run capacity -- ${words}\`\n\n${plans.shift()}\n\n${end}`;
  });
}

/** Returns the page of small apps with their costs as they are now. */
export async function updateCosts(page: string): Promise<string> {
  const costs = formatSmallApps(await readPublished());
  return page.replace(COSTS, (_, begin: string, end: string) => `${begin}\n${costs}\n\n${end}`);
}
