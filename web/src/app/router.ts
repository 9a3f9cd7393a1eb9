import { useEffect, useState } from 'preact/hooks';

/**
 * Pages are addressed by the fragment, so that the app serves one file and keys never reach a log of a server:
 * `#/entities/employees/rows/Sales/000123`. Segments are encoded, because a key may contain any character.
 */
export interface Address {
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
}

function parseAddress(hash: string): Address {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  return { segments: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** `#/a/b?c=d`. Parameters without a value are left out. */
export function toAddress(
  segments: readonly string[],
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const given = Object.entries(query).filter(
    (pair): pair is [string, string] => pair[1] !== undefined && pair[1] !== '',
  );
  const search = new URLSearchParams(given).toString();
  return `#/${segments.map(encodeURIComponent).join('/')}${search ? `?${search}` : ''}`;
}

/** The segments that a pattern such as `entities/:entity/rows/*` leaves open, or undefined if the address is another. */
export function matchAddress(pattern: string, segments: readonly string[]): Record<string, string> | undefined {
  const parts = pattern.split('/').filter(Boolean);
  const isOpen = parts.at(-1) === '*';
  if (isOpen ? segments.length < parts.length : segments.length !== parts.length) return undefined;
  const open: Record<string, string> = {};
  for (const [position, part] of parts.entries()) {
    const segment = segments[position] ?? '';
    if (part.startsWith(':')) open[part.slice(1)] = segment;
    else if (part !== '*' && part !== segment) return undefined;
  }
  return open;
}

export function navigate(address: string, { replace = false } = {}): void {
  if (!replace) location.hash = address;
  else {
    history.replaceState(null, '', address);
    window.dispatchEvent(new HashChangeEvent('hashchange'));
  }
}

export function useAddress(): Address {
  const [address, setAddress] = useState(() => parseAddress(location.hash));
  useEffect(() => {
    const follow = () => setAddress(parseAddress(location.hash));
    window.addEventListener('hashchange', follow);
    return () => window.removeEventListener('hashchange', follow);
  }, []);
  return address;
}
