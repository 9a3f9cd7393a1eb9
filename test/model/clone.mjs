/** States are small plain objects, which this copies several times faster than structuredClone does. */
export const clone = (value) => {
  if (Array.isArray(value)) return value.map(clone);
  if (value === null || typeof value !== 'object') return value;
  const copy = {};
  for (const name in value) copy[name] = clone(value[name]);
  return copy;
};
