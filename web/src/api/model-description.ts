/** What `GET /api/model` returns. A test compares these types with those of the route. */

export interface TemplateDescription {
  readonly template: string;
  readonly fields: readonly string[];
}

export interface FieldDescription {
  readonly type: 'String' | 'Boolean' | 'Int32' | 'Int64' | 'Double' | 'Json';
  readonly optional: boolean;
  readonly generated: boolean;
  readonly encrypted: boolean;
  readonly large: boolean;
  readonly derived: boolean;
  readonly kept: boolean;
  readonly restricted?: readonly string[] | undefined;
  readonly schema: Readonly<Record<string, unknown>>;
}

export interface RangeDescription {
  readonly fields: readonly string[];
  readonly bounded: string;
  readonly order: 'ascending' | 'descending';
}

export interface IndexDescription {
  readonly kind: 'intra-partition' | 'inter-partition' | 'index-entity';
  readonly of: 'one' | 'many';
  readonly fields: readonly string[];
  readonly ranges: readonly RangeDescription[];
  readonly unique: boolean;
  readonly sparse: boolean;
  readonly copies: 'everything' | 'keys' | readonly string[];
  readonly partition?: TemplateDescription | undefined;
  readonly row: TemplateDescription;
}

export interface TotalDescription {
  readonly fields: readonly string[];
  readonly periods: Readonly<Record<string, string>>;
  readonly ranges: readonly RangeDescription[];
  readonly sum: readonly string[];
  readonly min: readonly string[];
  readonly max: readonly string[];
  readonly sparse: boolean;
}

export interface SeriesDescription {
  readonly name: string;
  readonly first: number;
  readonly last: number;
  readonly span?: { readonly field: string; readonly per: string } | undefined;
}

export interface AttachmentDescription {
  readonly maxBytes: number;
  readonly types: readonly string[];
  readonly public: boolean;
  readonly maxAge?: number | undefined;
}

/** A field has the value of the field `by` of an entity. */
export interface ReferenceDescription {
  readonly to: string;
  readonly by: string;
}

export interface EntityDescription {
  readonly key: {
    readonly fields: readonly string[];
    readonly partition: TemplateDescription;
    readonly row: TemplateDescription;
  };
  readonly fields: Readonly<Record<string, FieldDescription>>;
  readonly kinds?: readonly string[] | undefined;
  readonly indexes: Readonly<Record<string, IndexDescription>>;
  readonly totals: Readonly<Record<string, TotalDescription>>;
  /** The fields of each group, which a read returns on demand. */
  readonly split: Readonly<Record<string, readonly string[]>>;
  readonly parent?: string | undefined;
  readonly children: readonly string[];
  readonly references: Readonly<Record<string, ReferenceDescription>>;
  readonly series?: SeriesDescription | undefined;
  readonly attachments: Readonly<Record<string, AttachmentDescription>>;
  readonly archive?: string | undefined;
  readonly archiveOf?: string | undefined;
  readonly movable: readonly string[];
  readonly period?:
    | { readonly per: string; readonly field: string; readonly keep: number; readonly archiveTo?: 'blob' | undefined }
    | undefined;
  readonly expiry?: { readonly days: number; readonly clock: string } | undefined;
  readonly counts: Readonly<Record<string, string>>;
  readonly lookup?: { readonly index: string; readonly maxAge: number } | undefined;
  readonly version: number;
  readonly maxAge?: number | undefined;
  readonly access: {
    readonly read: readonly string[];
    readonly write: readonly string[];
    readonly own?: object | undefined;
    readonly writtenByClients: boolean;
  };
}

export interface ModelDescription {
  readonly roles: readonly string[];
  readonly operatorRole: string;
  readonly entities: Readonly<Record<string, EntityDescription>>;
}
