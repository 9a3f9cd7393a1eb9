import { type Caller, type Implementations, RowkeyError } from '../../lib/index.ts';
import type { model } from './model.ts';

const nameOf = ({ subject, claims }: Caller) => String(claims.email ?? subject);

/** No rule lets somebody in: these do, in the store without rules. */
export const operations: Implementations<typeof model> = {
  async createLibrary({ input, caller, unlimited }) {
    const { libraryId } = (await unlimited.libraries.create(input)).values;
    await unlimited.members.put({ libraryId, userId: caller.subject }, { name: nameOf(caller) });
    return { libraryId };
  },
  async join({ input, caller, unlimited }) {
    const library = await unlimited.libraries.by.code(input);
    if (!library) throw new RowkeyError('not-found', 'No library has this code.');
    const { libraryId } = library;
    await unlimited.members.put({ libraryId, userId: caller.subject }, { name: nameOf(caller) });
    return { libraryId };
  },
};
