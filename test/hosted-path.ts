import { decodePath } from '../local/host/route.ts';

/** What functions receive of a path, by host. */

const PATH_AS_SENT = 'x-waws-unencoded-url';

/**
 * `local`: the host of this project. `azure`: the front end of App Service also splits a path at an encoded slash. `tools`: Core Tools, which send
 * no path as it was.
 */
export type TestHost = 'local' | 'azure' | 'tools';

/** The path below `/api/` as it is sent, which this host makes the parameter of a function's route and headers. */
export function receivePath(host: TestHost, sent: string, headers: Readonly<Record<string, string>> = {}) {
  const [raw = ''] = sent.split('?', 1);
  const path = decodePath(host === 'azure' ? raw.replace(/%2f/gi, '/') : raw);
  return { path, headers: host === 'tools' ? headers : { ...headers, [PATH_AS_SENT]: `/api/${sent}` } };
}
