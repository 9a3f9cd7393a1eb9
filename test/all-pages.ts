/** Reads all pages, each from the position that the one before returned. */
export async function allPages<Page extends { readonly next?: unknown }>(
  read: (after: Page['next']) => Promise<Page>,
): Promise<Page[]> {
  const pages = [await read(undefined)];
  for (let { next } = pages[0] as Page; next; ) {
    const page = await read(next);
    pages.push(page);
    next = page.next;
  }
  return pages;
}

/** Reads the items of all pages. */
export async function allItems<Item, Next>(
  read: (after: Next | undefined) => Promise<{ readonly items: readonly Item[]; readonly next?: Next | undefined }>,
): Promise<Item[]> {
  return (await allPages(read)).flatMap(({ items }) => items);
}
