import type { Difference } from './contract.ts';

/**
 * The only place where the storage in memory may differ from Azurite: each difference says what the service does. Sources: Microsoft's
 * documentation of the REST API (https://learn.microsoft.com/rest/api/storageservices).
 */
export const TABLE_DIFFERENCES: Readonly<Record<string, Difference>> = {
  'rejects a table name': {
    why: 'Azurite returns no code',
    azurite: ['400 ', '400 ', '400 ', '400 ', '400 '],
    memory: [
      '400 OutOfRangeInput',
      '400 InvalidResourceName',
      '400 InvalidResourceName',
      '400 InvalidResourceName',
      '400 OutOfRangeInput',
    ],
  },
  'limits a transaction to one partition': {
    why: 'Azurite executes a transaction on two partitions',
    azurite: [202, 'HTTP/1.1 201', ['p/r', 'q/r']],
    memory: [202, 'HTTP/1.1 400', []],
  },
  'rejects a page size': {
    why: 'Azurite accepts more than 1,000, and a fraction, for $top',
    azurite: ['ok', 'ok', 'ok'],
    memory: ['ok', '400 InvalidInput', '400 InvalidInput'],
  },
  'rejects a filter': {
    why: 'Azurite accepts a text that is not closed',
    azurite: ['400 InvalidInput', '400 InvalidInput', '400 InvalidInput', '400 InvalidInput', 'ok', '400 InvalidInput'],
    memory: Array.from({ length: 6 }, () => '400 InvalidInput'),
  },
  'rejects more than 15 comparisons': {
    why: 'Azurite has no limit of comparisons',
    azurite: 'ok',
    memory: '400 InvalidInput',
  },
  'rejects a character of a key': {
    why: 'Azurite has one code for all wrong input',
    azurite: Array.from({ length: 7 }, () => '400 InvalidInput'),
    memory: Array.from({ length: 7 }, () => '400 OutOfRangeInput'),
  },
  'limits a key to 512 units': {
    why: 'Azurite has one code for all wrong input',
    azurite: ['ok', '400 InvalidInput'],
    memory: ['ok', '400 KeyValueTooLarge'],
  },
  'limits an entity to 252 properties': {
    why: 'Azurite has no limit of properties',
    azurite: ['ok', 'ok'],
    memory: ['ok', '400 TooManyProperties'],
  },
  'limits an entity to 1 MiB': {
    why: 'Azurite does not limit an insert',
    azurite: ['ok', 'ok'],
    memory: ['ok', '400 EntityTooLarge'],
  },
  'rejects a value that does not have its type': {
    why: 'Azurite stores any value under any type',
    azurite: ['ok', 'ok', 'ok'],
    memory: ['400 InvalidInput', '400 InvalidInput', '400 InvalidInput'],
  },
  'rejects a signature outside its range': {
    why: 'Azurite does not enforce the range of a signature',
    azurite: ['200', '200', '201', '204', '204', '204'],
    memory: Array.from({ length: 6 }, () => '403 AuthorizationFailure'),
  },
  'lists only the rows of the range of a signature': {
    why: 'Azurite does not enforce the range of a signature',
    azurite: [
      ...['a', 'b', 'c'].flatMap((partition) => ['1', '2', '3', 'x'].map((row) => `${partition}/${row}`)),
      'd/other',
    ],
    memory: ['b/2', 'b/3'],
  },
  'requires two permissions for an upsert': {
    why: 'Azurite permits an upsert with the permission to update alone',
    azurite: '204',
    memory: '403 AuthorizationPermissionMismatch',
  },
  'rejects an expired, an early and a forged signature': {
    why: 'Azurite has another code',
    azurite: ['403 AuthorizationFailure', '403 AuthorizationFailure', '403 AuthorizationFailure', 403],
    memory: ['403 AuthenticationFailed', '403 AuthenticationFailed', '403 AuthenticationFailed', 403],
  },
};

const OUT_OF_RANGE = '400 OutOfRangeQueryParameterValue';
const INVALID = '400 InvalidQueryParameterValue';
const RANGE_CODES = [
  OUT_OF_RANGE,
  OUT_OF_RANGE,
  INVALID,
  INVALID,
  INVALID,
  ...Array.from({ length: 5 }, () => OUT_OF_RANGE),
];

export const QUEUE_DIFFERENCES: Readonly<Record<string, Difference>> = {
  'rejects parameters out of their range': {
    why: 'Azurite returns no code for two of them',
    azurite: [...RANGE_CODES.slice(0, 4), '400 ', RANGE_CODES[5], '400 ', ...RANGE_CODES.slice(7)],
    memory: RANGE_CODES,
  },
};

const NOT_PERMITTED = Array.from({ length: 3 }, () => '403 AuthorizationPermissionMismatch');

export const BLOB_DIFFERENCES: Readonly<Record<string, Difference>> = {
  'rejects a range behind the end': {
    why: 'Azurite returns no bytes for a range that begins right behind the end',
    azurite: 'ok',
    memory: '416 InvalidRange',
  },
  'lists blocks of a blob that is not committed': {
    why: 'Azurite returns an ETag of a blob that does not exist',
    azurite: [['YQ== 3'], [], 'an ETag'],
    memory: [['YQ== 3'], [], undefined],
  },
  'has no hash of a blob that was written in blocks': {
    why: 'Azurite computes a hash when such a blob is read',
    azurite: ['+XxdKZQb+xsv2rCHSQargg==', '+XxdKZQb+xsv2rCHSQargg=='],
    memory: [undefined, undefined],
  },
  'reports a source that does not exist or has no signature': {
    why: 'Azurite has another code, and requires no signature in one account',
    azurite: ['404 BlobNotFound', 'ok'],
    memory: ['404 CannotVerifyCopySource', '403 CannotVerifyCopySource'],
  },
  'copies only the expected blob': {
    why: 'Azurite has another code, and does not check the hash of a source',
    azurite: ['412 ConditionNotMet', 'ok'],
    memory: ['412 CannotVerifyCopySource', '400 Md5Mismatch'],
  },
  'rejects a signature': {
    why: 'Azurite has another code for a signature that is not valid',
    azurite: [...NOT_PERMITTED, ...Array.from({ length: 4 }, () => '403 AuthorizationFailure')],
    memory: [...NOT_PERMITTED, ...Array.from({ length: 4 }, () => '403 AuthenticationFailed')],
  },
  'does not overwrite with the permission to create': {
    why: 'Azurite has another code',
    azurite: '403 AuthorizationPermissionMismatch',
    memory: '403 UnauthorizedBlobOverwrite',
  },
};
