import { z } from 'zod';
import { optionsOf } from '../schema/options.ts';

/** A table that another program fills: the option `existing` of a declaration. */

/** The types of properties that no schema tells: their values are texts in an entity. */
const STORED_TYPES = ['String', 'Boolean', 'Int32', 'Int64', 'Double', 'DateTime', 'Guid', 'Binary'] as const;
export type StoredType = (typeof STORED_TYPES)[number];

/** The name of a property, or its name and its type. */
type StoredProperty = string | { readonly name: string; readonly type?: StoredType | undefined };

export interface Existing<Field extends string = string> {
  /**
   * The property of a field, if its name is another one or its type does not follow from the schema: `'LastName'`, or `{ name: 'CreatedOn', type:
   * 'DateTime' }`. The values of a DateTime, a Guid, a Binary (in base64) and an Int64 are texts of the schema. A field of the key that is not named here is read from
   * the key, and is no property.
   */
  readonly properties?: { readonly [Each in Field]?: StoredProperty } & {
    readonly [name: string]: StoredProperty | undefined;
  };
  /** Properties that tell the entity from other rows of the table, beside the form of its key: `{ Kind: 'Customer' }`. */
  readonly where?: Readonly<Record<string, string | number | boolean>>;
  /** True if the app only reads the table: every write of the entity is refused. */
  readonly readOnly?: boolean | undefined;
  /**
   * The least seconds between two looks at what the other program has changed, from 60 to 86,400: indexes, totals and unique values then follow its writes. A
   * timer of the app begins them, and `docs/existing-tables.md` says what each one costs. By default only the consistency check repairs them.
   */
  readonly follow?: number | undefined;
}

const PROPERTY_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,254}$/;
const propertyName = z.string().regex(PROPERTY_NAME, { error: 'needs the name of a property' });

export const ExistingOptions = optionsOf({
  properties: z
    .record(
      z.string(),
      z.union([propertyName, optionsOf({ name: propertyName, type: z.enum(STORED_TYPES).optional() })]).optional(),
    )
    .optional(),
  where: z.record(propertyName, z.union([z.string(), z.number(), z.boolean()])).optional(),
  readOnly: z.boolean().optional(),
  follow: z.int().min(60).max(86_400).optional(),
} satisfies Record<keyof Existing, z.ZodType>);
