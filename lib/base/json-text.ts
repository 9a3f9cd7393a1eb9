/** The JSON text of a parsed value of any depth. `JSON.stringify` overflows the stack. */
export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return textOfDeep(value);
    throw error;
  }
}

/** True if a parsed value nests more than `levels` arrays and objects. */
export function isDeeperThan(levels: number, value: unknown): boolean {
  let level = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > levels) return true;
    level = level.flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []));
  }
  return false;
}

/** Texts and values that are not written yet, last first. */
type Pending = { readonly text: string } | { readonly value: unknown };

function textOfDeep(value: unknown): string {
  const pending: Pending[] = [{ value }];
  let written = '';
  for (let next = pending.pop(); next; next = pending.pop()) {
    if ('text' in next) written += next.text;
    else if (typeof next.value !== 'object' || next.value === null) written += JSON.stringify(next.value);
    // A large body has more parts than a call may have arguments.
    else for (const part of partsOf(next.value).reverse()) pending.push(part);
  }
  return written;
}

function partsOf(value: object): Pending[] {
  if (Array.isArray(value))
    return [{ text: '[' }, ...value.flatMap((one, at) => [comma(at), { value: one }]), { text: ']' }];
  const members = Object.entries(value).flatMap(([name, one], at) => [
    comma(at),
    { text: `${JSON.stringify(name)}:` },
    { value: one },
  ]);
  return [{ text: '{' }, ...members, { text: '}' }];
}

function comma(at: number): Pending {
  return { text: at === 0 ? '' : ',' };
}
