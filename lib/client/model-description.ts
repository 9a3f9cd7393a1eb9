/** What the client uses of `GET /api/model`. */

export interface FieldDescription {
  readonly type: string;
  readonly optional: boolean;
  readonly generated: boolean;
  readonly derived: boolean;
  readonly kept: boolean;
  readonly encrypted: boolean;
  readonly large: boolean;
  readonly schema: Readonly<Record<string, unknown>>;
}

export interface RangesDescription {
  readonly fields: readonly string[];
  readonly ranges: readonly { readonly fields: readonly string[] }[];
}

export interface IndexDescription extends RangesDescription {
  readonly of: 'one' | 'many';
}

export interface EntityDescription extends DescribedEntity {
  /** Begins its paths. */
  readonly name: string;
}

interface DescribedEntity {
  readonly key: {
    readonly fields: readonly string[];
    readonly partition: { readonly fields: readonly string[] };
    readonly row: { readonly template: string };
  };
  readonly fields: Readonly<Record<string, FieldDescription>>;
  readonly indexes: Readonly<Record<string, IndexDescription>>;
  readonly totals: Readonly<Record<string, RangesDescription>>;
  /** The fields of each group of a vertical split. */
  readonly split: Readonly<Record<string, readonly string[]>>;
  readonly archive?: string | undefined;
  readonly series?: object | undefined;
  readonly version: number;
  readonly access: { readonly own?: object | undefined; readonly writtenByClients: boolean };
}

export interface ModelDescription {
  readonly entities: Readonly<Record<string, DescribedEntity>>;
}
