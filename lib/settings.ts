import { z } from 'zod';
import { RowkeyError } from './errors.ts';

/**
 * Every setting of the app, read from the environment once and typed from there on.
 * With `AzureWebJobsStorage` (a connection string) an account key is used, as on Azurite; with
 * `AzureWebJobsStorage__tableServiceUri` and its siblings a managed identity is, as in Azure. Properties are encrypted
 * with the keys of `KEY_ENCRYPTION_KEY_FILE`, or with the Key Vault key at `KEY_ENCRYPTION_KEY_URI`.
 */
const Settings = z
  .object({
    AzureWebJobsStorage: z.string().min(1).optional(),
    AzureWebJobsStorage__tableServiceUri: z.url().optional(),
    AzureWebJobsStorage__queueServiceUri: z.url().optional(),
    AzureWebJobsStorage__blobServiceUri: z.url().optional(),
    AzureWebJobsStorage__clientId: z.string().optional(),
    /** The word with which a change of the declaration that was refused is agreed to. */
    AGREED_MODEL_CHANGES: z.string().optional(),
    /** Given by the template; it names Application Insights, and opens nothing where local authentication is off. */
    APPLICATIONINSIGHTS_CONNECTION_STRING: z
      .string()
      .regex(/(^|;)InstrumentationKey=/, 'this is no connection string of Application Insights')
      .optional(),
    TELEMETRY: z.literal('console', 'set it to console, or leave it out').optional(),
    TOKEN_ISSUER: z.url(),
    TOKEN_AUDIENCE: z.string().min(1),
    TOKEN_JWKS_URI: z.url(),
    KEY_ENCRYPTION_KEY_FILE: z.string().min(1).optional(),
    KEY_ENCRYPTION_KEY_URI: z.url({ protocol: /^https$/ }).optional(),
  })
  .refine((settings) => settings.AzureWebJobsStorage ?? settings.AzureWebJobsStorage__tableServiceUri, {
    message: 'set AzureWebJobsStorage to a connection string, or AzureWebJobsStorage__tableServiceUri',
    path: ['AzureWebJobsStorage'],
  })
  .refine((settings) => !settings.KEY_ENCRYPTION_KEY_FILE || !settings.KEY_ENCRYPTION_KEY_URI, {
    message: 'set this or KEY_ENCRYPTION_KEY_URI, not both',
    path: ['KEY_ENCRYPTION_KEY_FILE'],
  });

export type Settings = z.infer<typeof Settings>;

let current: Settings | undefined;

/** The validated settings. Throws `wrong-setting`, naming each setting and never its value. */
export function settings(): Settings {
  if (current) return current;
  const parsed = Settings.safeParse(process.env);
  if (!parsed.success) {
    const list = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ');
    throw new RowkeyError('wrong-setting', `The settings are not usable: ${list}`);
  }
  current = parsed.data;
  return current;
}
