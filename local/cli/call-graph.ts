import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const APPLICATIONS = 'https://graph.microsoft.com/v1.0/applications';

/** An app registration of Microsoft Entra, read and changed by Microsoft Graph as whoever is signed in to the Azure CLI. */
export interface Registration {
  /** Returns some of its properties, such as `spa`. */
  read(property: string): Promise<unknown>;
  /** Replaces properties. */
  change(properties: object): Promise<void>;
}

/** Opens the registration of an application or a client by its id. */
export function openRegistration(id: string): Registration {
  const url = `${APPLICATIONS}(appId='${id}')`;
  return {
    read: async (property) => JSON.parse(await azure('--method', 'get', '--url', `${url}?$select=${property}`)),
    async change(properties) {
      const json = ['--headers', 'Content-Type=application/json', '--body', JSON.stringify(properties)];
      await azure('--method', 'patch', '--url', url, ...json);
    },
  };
}

async function azure(...args: readonly string[]): Promise<string> {
  try {
    return (await promisify(execFile)('az', ['rest', ...args])).stdout;
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    throw isMissing ? new Error('The Azure CLI is not installed. Install az and sign in with az login.') : error;
  }
}
