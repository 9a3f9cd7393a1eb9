import { z } from 'zod';
import { RowkeyError } from './errors.ts';

/** What is trusted, or told a token, is not to be changed or read on the way. */
const SecureUrl = z
  .url({ protocol: /^https?$/, error: 'a URL that begins with https:// is needed', abort: true })
  .regex(
    /^https:|^http:\/\/(127\.0\.0\.1|localhost|\[::1\])(:\d+)?([/?#]|$)/i,
    'https is needed, except on this machine',
  );
const Word = z.string().min(1, 'leave it out, or give it a value');

/**
 * Every setting of the app, read from the environment once and typed from there on; docs/configuration.md tells of each.
 * With `AzureWebJobsStorage` (a connection string) an account key is used, as on Azurite; with
 * `AzureWebJobsStorage__tableServiceUri` and its siblings a managed identity is, as in Azure. Properties are encrypted
 * with the keys of `KEY_ENCRYPTION_KEY_FILE`, or with the Key Vault key at `KEY_ENCRYPTION_KEY_URI`.
 */
const Settings = z
  .object({
    AzureWebJobsStorage: Word.optional(),
    AzureWebJobsStorage__tableServiceUri: SecureUrl.optional(),
    AzureWebJobsStorage__queueServiceUri: SecureUrl.optional(),
    AzureWebJobsStorage__blobServiceUri: SecureUrl.optional(),
    AzureWebJobsStorage__clientId: z.guid('the client id of a managed identity is needed').optional(),
    /** The word with which a change of the declaration that was refused is agreed to. */
    AGREED_MODEL_CHANGES: z.string().optional(),
    /** Given by the template; it names Application Insights, and opens nothing where local authentication is off. */
    APPLICATIONINSIGHTS_CONNECTION_STRING: z
      .string()
      .regex(/(^|;)InstrumentationKey=[0-9a-f-]{36}(;|$)/i, 'this is no connection string of Application Insights')
      .optional(),
    /** Given by Azure: the name of the app. */
    WEBSITE_SITE_NAME: z.string().optional(),
    TELEMETRY: z.literal('console', 'set it to console, or leave it out').optional(),
    TOKEN_ISSUER: SecureUrl,
    TOKEN_AUDIENCE: z.string().min(1, 'it is not set'),
    TOKEN_JWKS_URI: SecureUrl,
    KEY_ENCRYPTION_KEY_FILE: Word.optional(),
    KEY_ENCRYPTION_KEY_URI: z
      .string()
      .regex(
        /^https:\/\/[\w.-]+(:\d+)?\/keys\/[0-9a-z-]+$/i,
        'the https:// id of a key in Key Vault, without a version, is needed',
      )
      .optional(),
  })
  .check(({ value: settings, issues }) => {
    const refuse = (name: string, message: string) =>
      issues.push({ code: 'custom', path: [name], message, input: undefined });
    const services = ['tableServiceUri', 'queueServiceUri', 'blobServiceUri'] as const;
    const given = services.filter((service) => settings[`AzureWebJobsStorage__${service}`]);
    if (!settings.AzureWebJobsStorage && given.length < services.length)
      refuse(
        'AzureWebJobsStorage',
        `set this to a connection string, or all of ${services.map((service) => `AzureWebJobsStorage__${service}`).join(', ')}`,
      );
    if (settings.AzureWebJobsStorage && given.length > 0)
      refuse('AzureWebJobsStorage', `set this or AzureWebJobsStorage__${given[0]}, not both`);
    if (settings.KEY_ENCRYPTION_KEY_FILE && settings.KEY_ENCRYPTION_KEY_URI)
      refuse('KEY_ENCRYPTION_KEY_FILE', 'set this or KEY_ENCRYPTION_KEY_URI, not both');
  });

export type Settings = z.infer<typeof Settings>;

/** By these the documentation and the template are held to what is read here. */
export const SETTING_NAMES = Object.keys(Settings.shape);

let current: Settings | undefined;

/** The validated settings. Throws `wrong-setting`, naming each setting and never its value. */
export function settings(): Settings {
  current ??= parseSettings(process.env);
  return current;
}

/** Throws `wrong-setting`, naming each setting and never its value. */
export function parseSettings(environment: Readonly<Record<string, string | undefined>>): Settings {
  const parsed = Settings.safeParse(environment);
  if (parsed.success) return parsed.data;
  const list = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${messageOf(issue)}`).join('; ');
  throw new RowkeyError('wrong-setting', `The settings are not usable: ${list}`);
}

const TELEMETRY_NAMES = [
  'APPLICATIONINSIGHTS_CONNECTION_STRING',
  'AzureWebJobsStorage__clientId',
  'TELEMETRY',
  'WEBSITE_SITE_NAME',
] as const;
type TelemetrySettings = Partial<Pick<Settings, (typeof TELEMETRY_NAMES)[number]>>;

/** What telemetry needs, without the settings that are not usable: telemetry is to report those as well. */
export function telemetrySettings(
  environment: Readonly<Record<string, string | undefined>> = process.env,
): TelemetrySettings {
  return Object.fromEntries(
    TELEMETRY_NAMES.map((name) => [name, Settings.shape[name].safeParse(environment[name]).data]),
  );
}

function messageOf({ code, message, input }: z.core.$ZodIssue): string {
  return code === 'invalid_type' && input === undefined ? 'it is not set' : message;
}
