/** Timers in the order of their time, and of their start if the times are equal. */
export interface TimerQueue<Timer extends { readonly at: number; readonly nth: number }> {
  push(timer: Timer): void;
  pop(): Timer | undefined;
  clear(): void;
}

export function createTimerQueue<Timer extends { readonly at: number; readonly nth: number }>(): TimerQueue<Timer> {
  const heap: Timer[] = [];
  const isBefore = (one: Timer, other: Timer) => one.at < other.at || (one.at === other.at && one.nth < other.nth);
  const swap = (one: number, other: number) => {
    const [first, second] = [heap[one], heap[other]];
    if (first && second) [heap[one], heap[other]] = [second, first];
  };
  const goesFirst = (one: number, other: number) => {
    const [first, second] = [heap[one], heap[other]];
    return first !== undefined && second !== undefined && isBefore(first, second);
  };
  return {
    push(timer) {
      for (let at = heap.push(timer) - 1; at > 0; ) {
        const above = (at - 1) >> 1;
        if (!goesFirst(at, above)) return;
        swap(at, above);
        at = above;
      }
    },
    pop() {
      const [first] = heap;
      const last = heap.pop();
      if (heap.length === 0 || !last) return first;
      heap[0] = last;
      for (let at = 0; ; ) {
        const [left, right] = [2 * at + 1, 2 * at + 2];
        const least = goesFirst(left, at) ? left : at;
        const next = goesFirst(right, least) ? right : least;
        if (next === at) return first;
        swap(at, next);
        at = next;
      }
    },
    clear: () => heap.splice(0),
  };
}
