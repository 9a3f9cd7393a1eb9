import type { Route } from './route.ts';

export interface Segment {
  readonly text: string;
  /** In lower case, because literals ignore case, as those of the Functions host do. */
  readonly folded: string;
  /** The name of a parameter, which is one segment of any text. */
  readonly parameter: string | undefined;
}

export interface ParsedRoute {
  readonly route: Route;
  readonly segments: readonly Segment[];
}

export interface Match {
  readonly route: Route;
  /** With `%2F` still encoded, as the host passes them. */
  readonly params: Readonly<Record<string, string>>;
}

export function parseSegments(path: string): Segment[] {
  return path.split('/').map((text) => ({
    text,
    folded: text.toLowerCase(),
    parameter: /^\{(\w+)\}$/.exec(text)?.[1],
  }));
}

/**
 * Groups the routes that can match the same path, and sorts each group: a route precedes those that have a parameter where it
 * has a literal, and the first segment that differs decides.
 */
export function groupRoutes(routes: readonly Route[]): ReadonlyMap<string, readonly ParsedRoute[]> {
  const parsed = routes.map((route) => ({ route, segments: parseSegments(route.path) }));
  const precedenceOf = ({ segments }: ParsedRoute) =>
    segments.map(({ parameter }) => (parameter === undefined ? 0 : 1)).join('');
  parsed.sort((one, other) => (precedenceOf(one) < precedenceOf(other) ? -1 : 1));
  return Map.groupBy(parsed, ({ route }) => groupOf(route.path));
}

/** Every path begins with a literal. */
export function groupOf(path: string): string {
  const [first = '', ...others] = path.split('/');
  return `${first.toLowerCase()}/${others.length}`;
}

/**
 * Returns a function that finds the routes of a decoded path, the preferred one of each method first. A trailing slash is
 * ignored.
 */
export function createRouter(routes: readonly Route[]): (path: string) => readonly Match[] {
  const groups = groupRoutes(routes);
  return (path) => {
    const trimmed = path.replace(/\/$/, '');
    const values = trimmed.split('/');
    const matches: Match[] = [];
    nextRoute: for (const { route, segments } of groups.get(groupOf(trimmed)) ?? []) {
      const params: Record<string, string> = {};
      for (const [index, { folded, parameter }] of segments.entries()) {
        const value = values[index] ?? '';
        if (parameter !== undefined && value !== '') params[parameter] = value;
        else if (folded !== value.toLowerCase()) continue nextRoute;
      }
      matches.push({ route, params });
    }
    return matches;
  };
}
