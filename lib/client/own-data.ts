import type { Me } from '../api/me.ts';
import type { Erased, OwnRow } from './client-types.ts';
import type { Core } from './core.ts';
import type { Problem } from './errors.ts';

/** What concerns the caller. Loaded at first use. */

export async function me(core: Core, signal: AbortSignal | undefined): Promise<Me> {
  return JSON.parse((await core.send({ method: 'GET', path: '/me', signal })).text);
}

export async function listOwnData(core: Core, signal: AbortSignal | undefined): Promise<readonly OwnRow[]> {
  const rows: OwnRow[] = [];
  await eachPage(core, 'GET', signal, ({ items }) => rows.push(...items));
  return rows;
}

/** A repeated request erases what is left. */
export async function eraseOwnData(core: Core, signal: AbortSignal | undefined): Promise<Erased> {
  const problems: Problem[] = [];
  let [deleted, changed, failed] = [0, 0, 0];
  try {
    await eachPage(core, 'DELETE', signal, (page) => {
      deleted += page.deleted;
      changed += page.changed;
      failed += page.failed;
      problems.push(...page.problems);
    });
  } finally {
    // It may have changed any entity, even if a response is lost.
    core.forgetAll();
  }
  return { deleted, changed, failed, errors: problems.map(core.tools.toProblemError) };
}

// biome-ignore lint/suspicious/noExplicitAny: each request has pages of another form
type Use = (page: any) => void;

async function eachPage(core: Core, method: string, signal: AbortSignal | undefined, use: Use): Promise<void> {
  for (let after: string | undefined, isFirst = true; isFirst || after !== undefined; isFirst = false) {
    const query = core.tools.toQuery(Object.entries({ continuation: after }));
    const { text, headers } = await core.send({ method, path: `/me/data${query}`, signal });
    use(JSON.parse(text));
    after = core.tools.nextOf(headers);
  }
}
