import { RowkeyError } from '../base/errors.ts';

/**
 * The path and query as the client sent them. The front end of App Service sets this header and overwrites the client's, and so does the
 * local host. Core Tools do not, so a client may send it. https://github.com/Azure/azure-functions-host/issues/3998
 */
const PATH_AS_SENT = 'x-waws-unencoded-url';
const ACCEPTED = `a path of which each value is encoded once, or the header ${PATH_AS_SENT} with the path as it is sent`;

/**
 * Returns the decoded segments of the path of a route. `path` is what the host made of it: decoded once, but for `%2F`, so that the values
 * `a/b` and `a%2Fb` look the same, and so do invalid bytes and their text. Azure even splits a segment at an encoded slash. Then only the path as
 * sent tells them apart. Throws `invalid-input` if a segment can stand for several values.
 */
export function readSegments(path: string, headers: { get(name: string): string | null }): string[] {
  const sent = headers.get(PATH_AS_SENT);
  const [raw = ''] = sent?.split(/[?#]/, 1) ?? [];
  // Most paths have nothing that the host changes.
  if (!path.includes('%') && !/%|\/\.{1,2}(?:\/|$)/.test(raw)) return path.split('/');
  const segments = sent === null ? [] : raw.split('/').map(decode);
  if (segments.some((text) => text === '.' || text === '..'))
    throw pathError('A segment "." or ".."', 'clients and servers remove it');
  // What is before the path of the route depends on the host and on proxies.
  const wanted = joined(path.split('/'));
  const above = segments.findIndex((_, start) => joined(segments.slice(start)) === wanted);
  if (above > 0) return segments.slice(above);
  if (/%2f/i.test(path))
    throw pathError(
      'A slash, or the text "%2F", in a value of the path',
      'the server did not receive the path as sent',
    );
  return path.split('/');
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw pathError('A segment', 'it is not UTF-8 with percent-encoding');
  }
}

/** The same text for what the host may have made of the same path. */
function joined(segments: readonly string[]): string {
  return segments.join('/').replace(/%2f/gi, '/');
}

function pathError(what: string, why: string): RowkeyError {
  return new RowkeyError('invalid-input', `${what} cannot be read: ${why}.`, { field: 'path', accepted: ACCEPTED });
}
