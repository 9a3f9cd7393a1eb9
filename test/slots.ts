/** The counts of a series by their slots. */
export const slots = (counts: Readonly<Record<number, number>>): ReadonlyMap<number, number> =>
  new Map(Object.entries(counts).map(([slot, count]) => [Number(slot), count]));
