import { LRUCache } from 'lru-cache';

/**
 * Computes a value once for each frozen object, such as an entity of a model. The value is dropped with the object. An object
 * that is not frozen yet may still change, so its value is computed at each call.
 */
export function onceFor<Subject extends object, Value>(
  compute: (subject: Subject) => Value,
): (subject: Subject) => Value {
  const known = new WeakMap<Subject, { readonly value: Value }>();
  return (subject) => {
    const found = known.get(subject);
    if (found) return found.value;
    const value = compute(subject);
    if (Object.isFrozen(subject)) known.set(subject, { value });
    return value;
  };
}

/** Keeps a value for each object, such as a cache for a storage account. The value is made at its first use and dropped with the object. */
export function keptFor<Subject extends object, Value>(make: (subject: Subject) => Value): (subject: Subject) => Value {
  const kept = new WeakMap<Subject, { readonly value: Value }>();
  return (subject) => {
    const known = kept.get(subject) ?? { value: make(subject) };
    kept.set(subject, known);
    return known.value;
  };
}

/** Keeps the values that were used last, by a text, for each object such as a storage account. */
export function recentFor<Subject extends object, Value extends object | number>(most: number) {
  // With `max`, a cache would allocate the memory of all its entries at once, which takes milliseconds.
  return keptFor((_: Subject) => new LRUCache<string, Value>({ maxSize: most, sizeCalculation: () => 1 }));
}

/** Loads at the first call and returns the same result to every caller. A failure is not kept, so that the next call loads again. */
export function loadOnce<Result>(load: () => Promise<Result>): () => Promise<Result> {
  let loaded: Promise<Result> | undefined;
  return () => {
    loaded ??= load().catch((error: unknown) => {
      loaded = undefined;
      throw error;
    });
    return loaded;
  };
}
