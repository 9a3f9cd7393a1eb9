/** Creates the member of each name at its first use: at that time the model may not be known. */
export function byName<Member>(create: (name: string) => Member, own: Readonly<Record<string, unknown>> = {}): unknown {
  const members = new Map<string, unknown>(Object.entries(own));
  return new Proxy(Object.freeze({}), {
    get(_, name) {
      // An object with `then` would be taken for a promise.
      if (typeof name !== 'string' || name === 'then') return undefined;
      if (!members.has(name)) members.set(name, create(name));
      return members.get(name);
    },
  });
}
