import { commandLine } from '../../lib/command-line.ts';
import type { Instance } from '../instance/instance.ts';
import type { ExampleRequest, Examples } from '../packs/example-requests.ts';
import { DATA_FOLDER } from './command.ts';

interface Greeting {
  /** The prefix of the names in the storage account; empty for none. */
  readonly prefix: string;
  readonly instance: Instance;
  readonly data: string;
  /** Undefined if no example can be made for the model. */
  readonly examples: Examples | undefined;
  /** A token for the examples. */
  readonly token: string;
  readonly hasLoadedSamples: boolean;
  /** False for an app that keeps the route prefix of the host. */
  readonly hasConsole: boolean;
}

/** Returns what `npm start` prints: the addresses, a token, and commands that work unchanged for the served model. */
export function formatGreeting({
  prefix,
  instance,
  data,
  examples,
  token,
  hasLoadedSamples,
  hasConsole,
}: Greeting): string {
  const { url, tables, queues, blobs, issuer, accounts } = instance;
  return `
Rowkey is ready${hasLoadedSamples ? ' and has loaded the sample data' : ''}.

${
  hasConsole
    ? `  Console    ${url}/console
`
    : ''
}  API        ${url}/api   (${url}/api/openapi.json)
  Tables     ${tables}
  Queues     ${queues}
  Blobs      ${blobs}${prefix && `\n  Prefix     ${prefix}   (of tables, queues and containers)`}
${accounts > 1 ? `  Accounts   ${accounts}   (the addresses are those of the first)\n` : ''}  Identity   ${issuer}
${examples ? formatExamples(examples, { url, data, token }) : '\nThe model has no entity to try: add one to it.\n'}
Ctrl-C stops Rowkey; acknowledged writes are kept in ${data}.
`;
}

function formatExamples(
  { roles, claims, requests }: Examples,
  { url, data, token }: { url: string; data: string; token: string },
) {
  const words = [`--role ${roles.join(',')}`];
  for (const [name, value] of Object.entries(claims))
    words.push(name === 'email' ? `--email ${quote(value)}` : `--claim ${quote(`${name}=${value}`)}`);
  if (data !== DATA_FOLDER) words.push(`--data ${quote(data)}`);
  const fresh = `$(${commandLine('token', words.join(' '))})`;
  return `
A token with the role ${roles.join(' and ')}, valid for eight hours:

${token}

Try in another terminal:

${requests.map((request) => formatCurl(request, { url, token: fresh })).join('\n')}
`;
}

function formatCurl({ method, path, body }: ExampleRequest, { url, token }: { url: string; token: string }): string {
  const words = ["curl -s -w '\\n'", `-H "Authorization: Bearer ${token}"`];
  if (body) words.push("-H 'Content-Type: application/json'", `-d ${quote(JSON.stringify(body))}`);
  else if (method !== 'GET') words.push(`-X ${method}`);
  return [...words, quote(`${url}${path}`)].join(' ');
}

function quote(text: string): string {
  return /^[\w./:%@=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
