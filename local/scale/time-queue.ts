/** Items by their time: a binary heap. Items of one time leave in an order that the order of the pushes determines. */
export class TimeQueue<Item extends { readonly at: number }> {
  readonly #items: Item[] = [];

  /** Infinity if the queue is empty. */
  get nextTime(): number {
    return this.#items[0]?.at ?? Number.POSITIVE_INFINITY;
  }

  push(item: Item): void {
    const items = this.#items;
    let index = items.push(item) - 1;
    while (index > 0) {
      const above = (index - 1) >>> 1;
      const parent = items[above];
      if (!parent || parent.at <= item.at) break;
      items[index] = parent;
      index = above;
    }
    items[index] = item;
  }

  pop(): Item | undefined {
    const items = this.#items;
    const [first] = items;
    const last = items.pop();
    if (!first || !last || items.length === 0) return first;
    let index = 0;
    for (;;) {
      const left = items[2 * index + 1];
      const right = items[2 * index + 2];
      const isRight = left !== undefined && right !== undefined && right.at < left.at;
      const least = isRight ? right : left;
      if (!least || least.at >= last.at) break;
      items[index] = least;
      index = 2 * index + (isRight ? 2 : 1);
    }
    items[index] = last;
    return first;
  }
}
