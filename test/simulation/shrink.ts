/**
 * Returns as few of the events as `fails` still finds: removes ever smaller parts of them. An event that is left out changes no random
 * number of the others.
 */
export async function shrink(
  events: readonly number[],
  fails: (left: readonly number[]) => Promise<boolean>,
): Promise<readonly number[]> {
  let smallest = events;
  for (let size = Math.ceil(smallest.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let at = 0; at < smallest.length; ) {
      const left = smallest.toSpliced(at, size);
      if (await fails(left)) smallest = left;
      else at += size;
    }
  return smallest;
}
