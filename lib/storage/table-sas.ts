/** Permissions for the rows of one partition, all or from `firstRow` to `lastRow` inclusive, for a while. */
export interface TableSasRequest {
  readonly table: string;
  readonly partition: string;
  readonly firstRow?: string;
  readonly lastRow?: string;
  /** A subset of `raud`, in this order. */
  readonly permissions: string;
  readonly startsAt: Date;
  readonly expiresAt: Date;
}

export interface TableSasSigner {
  /** The shared access signature as the query of a URL, without the question mark. */
  sign(request: TableSasRequest): Promise<string>;
}
