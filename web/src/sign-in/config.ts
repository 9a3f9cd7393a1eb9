import type { Provider } from '../../../lib/client/oidc.ts';

/** What the app says of itself to the console: `GET /console/config.json`. */
export interface ConsoleConfig extends Provider {
  /** The root of the API; a path if it has the origin of the console. */
  readonly apiUrl: string;
}

/** The address of the console, to which the identity provider returns. */
const CONSOLE_URL = new URL(import.meta.env.BASE_URL, location.origin).href;

export async function loadConfig(): Promise<ConsoleConfig> {
  const response = await fetch(new URL('config.json', CONSOLE_URL));
  if (!response.ok) throw new Error(`The app has no configuration of the console: the status was ${response.status}.`);
  const config: Omit<ConsoleConfig, 'redirectTo'> = await response.json();
  return { ...config, redirectTo: CONSOLE_URL, apiUrl: new URL(config.apiUrl, CONSOLE_URL).href };
}
