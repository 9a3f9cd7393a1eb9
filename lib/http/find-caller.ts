import ipaddr from 'ipaddr.js';
import { type Caller, isVisitor } from '../access/token.ts';
import type { App } from './route.ts';

/** The caller of a request. Throws `unauthenticated`. */
export async function findCaller(
  { authenticate, trustedProxies }: Pick<App, 'authenticate' | 'trustedProxies'>,
  headers: Pick<Headers, 'get'>,
): Promise<Caller> {
  const caller = await authenticate(headers.get('authorization') ?? undefined);
  const address = isVisitor(caller) ? readAddress(headers.get('x-forwarded-for'), trustedProxies) : undefined;
  return address === undefined ? caller : { ...caller, address };
}

/**
 * The address that the outermost trusted proxy names: each proxy appends the address of its client, and a client may send what it
 * likes before. Of an IPv6 address the network, within which a client chooses its addresses (RFC 8981). Undefined if there is none.
 */
export function readAddress(forwardedFor: string | null, trustedProxies: number): string | undefined {
  if (trustedProxies === 0 || forwardedFor === null) return undefined;
  // Azure appends the port.
  const text = forwardedFor
    .split(',')
    .at(-trustedProxies)
    ?.trim()
    .replace(/^\[(.*)\](:\d+)?$/, '$1')
    .replace(/^([\d.]+):\d+$/, '$1');
  if (!text || !ipaddr.isValid(text)) return undefined;
  const address = ipaddr.process(text);
  if (address instanceof ipaddr.IPv4) return address.toString();
  return `${address.parts
    .slice(0, NETWORK_PARTS)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}

/** Of 16 bits each. */
const NETWORK_PARTS = 4;
