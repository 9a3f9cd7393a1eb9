/** What the app says of itself to the console: `GET /console/config.json`. */
export interface ConsoleConfig {
  readonly issuer: string;
  readonly clientId: string;
  readonly scope: string;
  /** The root of the API; a path if it has the origin of the console. */
  readonly apiUrl: string;
}

/** The address of the console, to which the identity provider returns. */
export const CONSOLE_URL = new URL(import.meta.env.BASE_URL, location.origin).href;

export async function loadConfig(): Promise<ConsoleConfig> {
  const response = await fetch(new URL('config.json', CONSOLE_URL));
  if (!response.ok) throw new Error(`The app has no configuration of the console: the status was ${response.status}.`);
  const config: ConsoleConfig = await response.json();
  return { ...config, apiUrl: new URL(config.apiUrl, CONSOLE_URL).href };
}
