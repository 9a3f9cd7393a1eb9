import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { IdentityProvider } from './access/token.ts';
import { RowkeyError } from './base/errors.ts';
import type { ConsoleSettings } from './http/console.ts';
import type { KeyRingOptions } from './storage/lazy-key-ring.ts';
import { type AccountOptions, FIRST_ACCOUNT, type NamedOptions, type StorageOptions } from './storage/storage.ts';
import type { TelemetryOptions } from './telemetry/telemetry.ts';

/** Signing keys and requests with tokens must not be read or changed in transit. */
const SecureUrl = z
  .url({ protocol: /^https?$/, error: 'must be a URL that begins with https://', abort: true })
  .regex(
    /^https:|^http:\/\/(127\.0\.0\.1|localhost|\[::1\])(:\d+)?([/?#]|$)/i,
    'must use https, except on this machine',
  );
const Word = z.string().min(1, 'must not be empty');

/** The settings of a storage account, which begin with the name of its connection. */
const CONNECTION = {
  /** A connection string with an account key, for the emulator. */
  AzureWebJobsStorage: Word.optional(),
  /** The tables of the storage account in Azure, which the app opens with its identity. Set all three services, and no `AzureWebJobsStorage`. */
  AzureWebJobsStorage__tableServiceUri: SecureUrl.optional(),
  /** Its queues. */
  AzureWebJobsStorage__queueServiceUri: SecureUrl.optional(),
  /** Its blobs. */
  AzureWebJobsStorage__blobServiceUri: SecureUrl.optional(),
  /** The client id of a user-assigned identity. By default the identity of the system. */
  AzureWebJobsStorage__clientId: z.guid('must be the client id of a managed identity').optional(),
};
const SERVICES = ['tableServiceUri', 'queueServiceUri', 'blobServiceUri'] as const;
const Connection = z.object(CONNECTION).check(({ value: settings, issues }) => {
  for (const message of connectionErrors(settings))
    issues.push({ code: 'custom', path: ['AzureWebJobsStorage'], message, input: undefined });
});

function* connectionErrors(settings: z.infer<z.ZodObject<typeof CONNECTION>>): Generator<string> {
  const given = SERVICES.filter((service) => settings[`AzureWebJobsStorage__${service}`]);
  const names = SERVICES.map((service) => `AzureWebJobsStorage__${service}`);
  if (!settings.AzureWebJobsStorage && given.length < SERVICES.length)
    yield `must be a connection string, or all of ${names.join(', ')} must be set`;
  if (settings.AzureWebJobsStorage && given.length > 0)
    yield `must not be set together with AzureWebJobsStorage__${given[0]}`;
}

/** The name of a further account is that of a setting, which must not be one of the app's own. */
const ACCOUNT = /^(?!(first|AzureWebJobs.*)$)[a-z][a-z0-9]{0,30}$/i;

/** The environment variables of the app. `npm run reference` writes docs/reference/configuration.md from the comments. */
const Settings = z
  .object({
    ...CONNECTION,
    /** The storage account of the backup, as a connection string. Required if the model declares `backup`, unless the next setting names it. */
    BackupStorage: Word.optional(),
    /** The blobs of that account, which the app opens with its identity. */
    BackupStorage__blobServiceUri: SecureUrl.optional(),
    /**
     * The names of further storage accounts, separated by spaces, such as `second third`. Each is the name of a connection: the settings
     * `second`, or `second__tableServiceUri` and its siblings. By default there is one account.
     */
    STORAGE_ACCOUNTS: Word.refine(
      (text) => areAccounts(text.split(' ')),
      'must be different names of settings, separated by spaces: letters and digits, a letter first, and not first',
    ).optional(),
    /** The word that agrees to a rejected change of the model. */
    AGREED_MODEL_CHANGES: z.string().optional(),
    /**
     * Where traces and metrics go, under the identity of the app. It gives no access to Application Insights if local authentication is off
     * there. By default there is no telemetry.
     */
    APPLICATIONINSIGHTS_CONNECTION_STRING: z
      .string()
      .regex(/(^|;)InstrumentationKey=[0-9a-f-]{36}(;|$)/i, 'must be a connection string of Application Insights')
      .optional(),
    /** The name under which telemetry is found. Azure sets it. By default `rowkey`. */
    WEBSITE_SITE_NAME: z.string().optional(),
    /** `console` prints traces and metrics instead. */
    TELEMETRY: z.literal('console', 'must be console, or not be set').optional(),
    /** The issuer of accepted tokens: their claim `iss`, exactly. */
    TOKEN_ISSUER: SecureUrl,
    /** Their claim `aud`. */
    TOKEN_AUDIENCE: z.string().min(1, 'is required'),
    /** Where the public keys of the issuer are. `https`, except on this machine. In Azure always `https`, as for `TOKEN_ISSUER`. */
    TOKEN_JWKS_URI: SecureUrl,
    /**
     * How many proxies before the app append the address of their client to `X-Forwarded-For`, 0 to 9: with 1, the last address is that of the
     * client, by which visitors are counted. Count only proxies that nobody can go around. The template sets 1, for the front end of Azure. By
     * default 0: no address is trusted.
     */
    TRUSTED_PROXIES: z.string().regex(/^\d$/, 'must be a whole number from 0 to 9').optional(),
    /** The client id of the console at the identity provider. By default there is no console. */
    CONSOLE_CLIENT_ID: Word.optional(),
    /** The address of the discovery document of the provider, without `/.well-known/openid-configuration`. By default `TOKEN_ISSUER`. */
    CONSOLE_ISSUER: SecureUrl.optional(),
    /** The scopes that the console asks for, separated by spaces. By default `openid`. */
    CONSOLE_SCOPE: Word.optional(),
    /**
     * Other addresses that the console calls to sign in, separated by spaces, if the token endpoint of the provider has another origin than the
     * issuer.
     */
    CONSOLE_CONNECT_TO: Word.refine(
      (text) => text.split(' ').every((url) => SecureUrl.safeParse(url).success),
      'must be https:// addresses, separated by spaces',
    ).optional(),
    /** A file of keys for encrypted fields, for one machine. `npm run rotate-key` writes it. */
    KEY_ENCRYPTION_KEY_FILE: Word.optional(),
    /**
     * The id, without a version, of the key in Key Vault that wraps the keys of encrypted fields. Required in Azure if the model has encrypted
     * fields.
     */
    KEY_ENCRYPTION_KEY_URI: z
      .string()
      .regex(
        /^https:\/\/[\w.-]+(:\d+)?\/keys\/[0-9a-z-]+$/i,
        'must be the https:// id of a key in Key Vault, without a version',
      )
      .optional(),
  })
  .check(({ value: settings, issues }) => {
    const refuse = (name: string, message: string) =>
      issues.push({ code: 'custom', path: [name], message, input: undefined });
    for (const error of connectionErrors(settings)) refuse('AzureWebJobsStorage', error);
    if (settings.BackupStorage && settings.BackupStorage__blobServiceUri)
      refuse('BackupStorage', 'must not be set together with BackupStorage__blobServiceUri');
    for (const name of ['TOKEN_ISSUER', 'TOKEN_JWKS_URI'] as const)
      if (settings.WEBSITE_SITE_NAME && !/^https:/i.test(settings[name])) refuse(name, 'must use https in Azure');
    if (settings.KEY_ENCRYPTION_KEY_FILE && settings.KEY_ENCRYPTION_KEY_URI)
      refuse('KEY_ENCRYPTION_KEY_FILE', 'must not be set together with KEY_ENCRYPTION_KEY_URI');
  });

function areAccounts(names: readonly string[]): boolean {
  return (
    names.every((name) => ACCOUNT.test(name)) && new Set(names.map((name) => name.toLowerCase())).size === names.length
  );
}

type Environment = Readonly<Record<string, string | undefined>>;
type Settings = z.infer<typeof Settings>;

/** A test compares the documentation and the template with these names. */
export const SETTING_NAMES = Object.keys(Settings.shape);

export interface RowkeySettings {
  readonly storage: StorageOptions;
  /**
   * The name, or the prefix, of the app settings that name the storage account, or the first of several. Queue triggers need it. Default:
   * AzureWebJobsStorage. The name of a further account is that of its settings.
   */
  readonly connection?: string | undefined;
  /** The storage account of the backup. Required if the model declares one. */
  readonly backup?: AccountOptions | undefined;
  /** The identity provider whose tokens are accepted. */
  readonly auth: IdentityProvider;
  /**
   * How many proxies before the app append the address of their client to `X-Forwarded-For`: 1 for Azure Functions alone. Limits of visitors then
   * count each address. By default 0: they count all visitors together.
   */
  readonly trustedProxies?: number | undefined;
  /** Required if the model has encrypted fields. */
  readonly keys?: KeyRingOptions | undefined;
  readonly telemetry?: TelemetryOptions | undefined;
  /** How people sign in to the console. Without it, the console is off. */
  readonly console?: ConsoleSettings | undefined;
  /** The word with which an operator accepts a model change that the app rejected. */
  readonly agreedModelChanges?: string | undefined;
}

const GivenConsole = z.strictObject({
  clientId: Word,
  issuer: SecureUrl.optional(),
  scope: Word.optional(),
  connectTo: z.array(SecureUrl).optional(),
});

/** Checks settings of the console that code gives. Throws `wrong-setting`. */
export function checkConsoleSettings(settings: ConsoleSettings): void {
  const { error } = GivenConsole.safeParse(settings);
  if (error) throw new RowkeyError('wrong-setting', `Invalid settings: ${formatIssues(error, 'console')}.`);
}

/** Invalid settings. The app connects to nothing, and reports the reason when it starts. */
export interface UnusableSettings {
  readonly refusal: RowkeyError;
  readonly connection?: string | undefined;
  readonly telemetry?: TelemetryOptions | undefined;
}

interface EnvironmentOptions {
  readonly connection?: string;
  readonly accounts?: readonly string[];
}

export const DEFAULT_CONNECTION = 'AzureWebJobsStorage';
export const BACKUP_CONNECTION = 'BackupStorage';

/**
 * Reads the settings from environment variables: `fromEnvironment(process.env)`. With `connection: 'ShopStorage'`, the settings
 * `ShopStorage`, or `ShopStorage__tableServiceUri` and its siblings, name the storage account, and `accounts` has the names of further
 * connections. Without `connection`, the setting `STORAGE_ACCOUNTS` has them. It does not throw: the real host would continue with no function at all and
 * log no reason.
 */
export function fromEnvironment(
  variables: Environment,
  { connection = DEFAULT_CONNECTION, accounts: given }: EnvironmentOptions = {},
): RowkeySettings | UnusableSettings {
  const environment = withConnection(variables, connection);
  const telemetry = readTelemetry(environment);
  const refuse = (...issues: readonly string[]): UnusableSettings => {
    const message = `Invalid settings: ${issues.join('; ')}.`;
    return { refusal: new RowkeyError('wrong-setting', message), connection, telemetry };
  };
  const { data: settings, error } = Settings.safeParse(environment);
  if (error) return refuse(formatIssues(error).replaceAll(DEFAULT_CONNECTION, connection));
  const names = given ?? (connection === DEFAULT_CONNECTION ? settings.STORAGE_ACCOUNTS?.split(' ') : undefined) ?? [];
  const further = names.map((name) => readAccount(variables, name));
  const issues = further.flatMap((account) => ('issue' in account ? account.issue : []));
  if (issues.length > 0) return refuse(...issues);
  const first: NamedOptions = { name: FIRST_ACCOUNT, ...storageOf(settings) };
  const accounts = [first, ...further.filter((account) => 'name' in account)];
  const repeated = accounts.findIndex((account, index) =>
    accounts.slice(0, index).some((other) => isSame(account, other)),
  );
  if (repeated > 0) return refuse(`${accounts[repeated]?.name} is a storage account that another setting names`);
  const { TOKEN_ISSUER: issuer, TOKEN_AUDIENCE: audience, TOKEN_JWKS_URI: jwksUri } = settings;
  return {
    storage: further.length === 0 ? storageOf(settings) : { accounts },
    connection,
    auth: { issuer, audience, jwksUri },
    ...(settings.TRUSTED_PROXIES ? { trustedProxies: Number(settings.TRUSTED_PROXIES) } : {}),
    backup: backupOf(settings),
    keys: keysOf(settings),
    telemetry,
    console: consoleOf(settings),
    agreedModelChanges: settings.AGREED_MODEL_CHANGES,
  };
}

/** Copies the settings of the connection to the names of the default connection. */
function withConnection(variables: Environment, connection: string): Environment {
  const names = SETTING_NAMES.filter((name) => name.startsWith(DEFAULT_CONNECTION));
  const values = names.map((name) => [name, variables[name.replace(DEFAULT_CONNECTION, connection)]]);
  return { ...variables, ...Object.fromEntries(values) };
}

/** Reads a further storage account, whose settings begin with its name. */
function readAccount(variables: Environment, name: string): NamedOptions | { readonly issue: string } {
  const { data, error } = Connection.safeParse(withConnection(variables, name));
  return data ? { name, ...storageOf(data) } : { issue: formatIssues(error).replaceAll(DEFAULT_CONNECTION, name) };
}

/** True for two names of one account, whose rows would be lost with either of them. */
function isSame({ name: _, ...one }: NamedOptions, { name: __, ...other }: NamedOptions): boolean {
  return 'tables' in one && 'tables' in other ? one.tables === other.tables : isDeepStrictEqual(one, other);
}

function storageOf({
  AzureWebJobsStorage: connectionString = '',
  ...rest
}: z.infer<typeof Connection>): AccountOptions {
  const { AzureWebJobsStorage__tableServiceUri: tables, AzureWebJobsStorage__clientId: clientId } = rest;
  const { AzureWebJobsStorage__queueServiceUri: queues, AzureWebJobsStorage__blobServiceUri: blobs } = rest;
  return tables && queues && blobs ? { tables, queues, blobs, clientId } : { connectionString };
}

function backupOf(settings: Settings): AccountOptions | undefined {
  const { BackupStorage: connectionString, BackupStorage__blobServiceUri: blobs } = settings;
  if (connectionString) return { connectionString };
  // A backup uses no other service of its account.
  return blobs ? { tables: blobs, queues: blobs, blobs, clientId: settings.AzureWebJobsStorage__clientId } : undefined;
}

function keysOf({ KEY_ENCRYPTION_KEY_FILE: file, KEY_ENCRYPTION_KEY_URI: keyUri, ...rest }: Settings) {
  if (file) return { file };
  return keyUri ? { keyUri, clientId: rest.AzureWebJobsStorage__clientId } : undefined;
}

function consoleOf(settings: Settings): ConsoleSettings | undefined {
  const { CONSOLE_CLIENT_ID: clientId, CONSOLE_ISSUER: issuer, CONSOLE_SCOPE: scope } = settings;
  return clientId ? { clientId, issuer, scope, connectTo: settings.CONSOLE_CONNECT_TO?.split(' ') } : undefined;
}

/** Reads each setting separately, so that telemetry can report another setting that is invalid. */
function readTelemetry(environment: Environment): TelemetryOptions {
  const read = <Name extends keyof Settings>(name: Name) => Settings.shape[name].safeParse(environment[name]).data;
  return {
    console: read('TELEMETRY') === 'console',
    connectionString: read('APPLICATIONINSIGHTS_CONNECTION_STRING'),
    clientId: read('AzureWebJobsStorage__clientId'),
    serviceName: read('WEBSITE_SITE_NAME'),
  };
}

function formatIssues({ issues }: z.ZodError, ...above: readonly string[]): string {
  return issues.map((issue) => `${[...above, ...issue.path].join('.')} ${messageOf(issue)}`).join('; ');
}

function messageOf({ code, message, input }: z.core.$ZodIssue): string {
  return code === 'invalid_type' && input === undefined ? 'is required' : message;
}
