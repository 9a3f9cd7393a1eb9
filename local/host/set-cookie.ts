interface Nullable<T> {
  readonly value?: T;
}

/** A cookie in the form of the library. */
export interface CoreCookie {
  readonly name: string;
  readonly value: string;
  readonly domain?: Nullable<string>;
  readonly path?: Nullable<string>;
  readonly expires?: Nullable<{ readonly seconds: number }>;
  readonly secure?: Nullable<boolean>;
  readonly httpOnly?: Nullable<boolean>;
  readonly maxAge?: Nullable<number>;
  /** `none` means that the app did not set the attribute; `explicitNone` is the value None. */
  readonly sameSite?: 'none' | 'lax' | 'strict' | 'explicitNone';
}

export function setCookie(cookie: CoreCookie): string {
  const { domain, path, expires, secure, httpOnly, maxAge, sameSite = 'none' } = cookie;
  const parts = [`${cookie.name}=${encodeURIComponent(cookie.value)}`];
  if (expires?.value) parts.push(`expires=${new Date(expires.value.seconds * 1000).toUTCString()}`);
  if (maxAge?.value !== undefined) parts.push(`max-age=${maxAge.value}`);
  if (domain?.value) parts.push(`domain=${domain.value}`);
  // The real host writes the root if no path is given.
  parts.push(`path=${path?.value ?? '/'}`);
  if (secure?.value) parts.push('secure');
  if (sameSite !== 'none') parts.push(`samesite=${sameSite === 'explicitNone' ? 'none' : sameSite}`);
  if (httpOnly?.value) parts.push('httponly');
  return parts.join('; ');
}
