import type { ErrorCode } from '../base/errors.ts';

export type ProblemCode = ErrorCode | 'internal';

/** Texts may have code spans in backticks, and no other markup: OpenAPI, the page of the API and docs/reference/problems.md show them. */
export interface ProblemKind {
  readonly status: number;
  readonly title: string;
  /** Whether the same request may succeed later. */
  readonly retry: string;
  /** When the API returns the problem. */
  readonly when: string;
  /** The action for the caller. */
  readonly action: string;
  /** The action for the operator. */
  readonly operator?: string;
  readonly notes?: readonly string[];
  /** Headings of the documentation, with their pages and anchors. */
  readonly see?: Readonly<Record<string, string>>;
  /** Replaces the message of the error, which only operators can act on, such as one with the name of a setting or a table. */
  readonly shown?: string;
}

const WAIT = 'Retry after the seconds in the `Retry-After` header.';
const AFTER_WAITING = 'after `Retry-After`';

/** Every error code with its status, title and documentation. `npm run problems` writes docs/reference/problems.md from it. */
export const PROBLEMS: Readonly<Record<ProblemCode, ProblemKind>> = {
  'invalid-input': {
    status: 400,
    title: 'Validation failed',
    retry: 'no',
    when: 'The path, the query, a header or the body is not valid. `field` names the first invalid field, `errors` lists up to 20 of them, `accepted` says what is allowed.',
    action: 'Correct the request. `/api/openapi.json` has the schema of every route.',
  },
  unauthenticated: {
    status: 401,
    title: 'Unauthorized',
    retry: 'with another token',
    when: 'The request has no bearer token, or the token is expired, or from another issuer, or for another audience, or not signed by a key of the issuer.',
    action: 'Get a new token and send it in the `Authorization` header.',
    operator:
      'If all tokens fail, compare `TOKEN_ISSUER` and `TOKEN_AUDIENCE` with the claims `iss` and `aud` of a token.',
    see: { Configuration: 'configuration.md' },
  },
  forbidden: {
    status: 403,
    title: 'Forbidden',
    retry: 'no',
    when: 'The token is valid, but its roles or claims do not allow the request: the entity, a restricted field, a filter or an index by such a field, or the permissions of a grant. Or grants are revoked for the identity.',
    action: 'Use a token with a role or claim that `accepted` names, or request only what it allows.',
    operator:
      'If a caller cannot read its own entity, check that its token has the claim that `own` names, verified. Grants that were revoked can be restored.',
    see: { "Which row is the caller's own": '../grants.md#which-row-is-the-callers-own' },
  },
  'not-found': {
    status: 404,
    title: 'Not found',
    retry: 'no',
    when: 'No entity, file or operation has this key, or no route has this path.',
    action: 'Check the path and the key. POST and PUT create an entity; PATCH and DELETE need an existing one.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'Method not allowed',
    retry: 'no',
    when: 'The path exists, but not with this method.',
    action: 'Use a method that the `Allow` header lists.',
    notes: [
      '`GET` of the path of an entity without a key returns the paths that read it: by key, by partition and through its indexes. Only a lookup table has a list of all entities.',
    ],
    see: { 'Lookup tables': 'model.md#lookup-tables' },
  },
  'duplicate-key': {
    status: 409,
    title: 'Conflict',
    retry: 'no',
    when: 'An entity with this key already exists.',
    action: 'Use another key, or PUT to replace the entity.',
  },
  'duplicate-value': {
    status: 409,
    title: 'Conflict',
    retry: 'no',
    when: 'Another entity, which is not disclosed, has this value of the unique field that `field` names. Or two entities of a batch have the same key or unique value.',
    action:
      'Use another value. A value that was just given up may stay taken for moments, and up to 90 seconds after a crash.',
    see: { 'What Rowkey does not guarantee': '../internals/consistency.md#what-rowkey-does-not-guarantee' },
  },
  referenced: {
    status: 409,
    title: 'Conflict',
    retry: 'no',
    when: 'Other entities refer to this one, so it cannot be deleted, archived, moved or given another value of the field that they refer to. `detail` names the entities and their field.',
    action: 'Delete or change the entities that refer to it first.',
    see: { References: 'model.md#references' },
  },
  'partition-full': {
    status: 409,
    title: 'Conflict',
    retry: 'after others are deleted',
    when: 'The partition has as many entities as the model allows: the maximum of the field that counts them. `accepted` names it. A move to the partition fails with this reason.',
    action:
      'Delete entities of the partition, or use another partition. An expired entity counts until the timer deletes it.',
    see: { 'Bound a partition': 'model.md#bound-a-partition' },
  },
  'length-required': {
    status: 411,
    title: 'Length required',
    retry: 'no',
    when: 'The request has no body, or a body without a `Content-Length` header. The Functions host does not pass chunked bodies on.',
    action:
      'Send a body with the `Content-Length` header. In .NET, call `LoadIntoBufferAsync` of a `JsonContent` before it is sent ([other languages](../other-languages.md#net)).',
  },
  'etag-mismatch': {
    status: 412,
    title: 'Precondition failed',
    retry: 'after reading again',
    when: '`If-Match` or `If-None-Match` does not hold: the entity changed since it was read, or does not exist, or exists although `If-None-Match: *` was sent. `etag` is the current ETag, if there is one.',
    action: 'Read the entity, apply the change again, and repeat the request with the new ETag.',
  },
  'too-large': {
    status: 413,
    title: 'Payload too large',
    retry: 'no',
    when: 'The body, a file, a field, the entity, a list, a batch or the children to include exceed a limit, which `accepted` or `detail` names.',
    action: 'Send or request less at once. Declare a long text as `large`. Read children as a list.',
    notes: [
      'A transaction deletes an entity together with its children. So as an action of `POST /api/transact` or of an atomic batch, the delete of an entity that needs more than 100 rows with its children and its rows of indexes is rejected. Use its DELETE, which has no such limit.',
    ],
    see: {
      'Large texts': 'model.md#large-texts',
      Lists: 'http.md#lists',
      'Delete a range': 'http.md#delete-a-range',
    },
  },
  'unsupported-media-type': {
    status: 415,
    title: 'Unsupported media type',
    retry: 'no',
    when: 'The `Content-Type` of the body is not JSON, or the bytes of the file are of a type that is not accepted.',
    action: 'Send one of the types that `accepted` lists.',
  },
  'range-not-satisfiable': {
    status: 416,
    title: 'Range not satisfiable',
    retry: 'no',
    when: 'The `Range` of a file begins after its last byte. `accepted` and the header `Content-Range` have the length of the file.',
    action: 'Ask for bytes within the file.',
  },
  'too-many-requests': {
    status: 429,
    title: 'Too many requests',
    retry: AFTER_WAITING,
    when: 'The identity exceeded a limit of requests, or of grants, which `accepted` names.',
    action: `${WAIT} Use a grant until it expires.`,
    see: { Limits: '../limits.md' },
  },
  internal: {
    status: 500,
    title: 'Internal server error',
    retry: 'once',
    when: 'The API failed unexpectedly. The log of the app has the error. A write may have been applied.',
    action: 'Retry once. If the error persists, report it to the operator.',
    operator: 'Report it as a bug.',
  },
  'wrong-setting': {
    status: 500,
    title: 'Internal server error',
    retry: 'no: an operator must act',
    when: 'A setting of the app is wrong, or a change of the model was rejected. `detail` does not say which, because callers cannot act on it.',
    action: 'Report it to the operator.',
    operator: 'The log of the app names the setting or the change.',
    see: {
      Configuration: 'configuration.md',
      'Changes that are rejected': '../change-the-model.md#changes-that-are-rejected',
    },
    shown: 'The app is misconfigured. The operator finds the reason in the log of the app.',
  },
  'wrong-output': {
    status: 500,
    title: 'Internal server error',
    retry: 'no',
    when: 'An operation of the app returned something other than it declares. A write may have been applied.',
    action: 'Report it to the operator.',
    operator: 'The log names the operation and the members. Correct the implementation, or the schema of its output.',
    see: { 'Operations of your app': '../use-as-a-package.md#declare-an-operation' },
    shown: 'The operation returned something that it does not declare. The error was logged.',
  },
  'wrong-operation': {
    status: 500,
    title: 'Internal server error',
    retry: 'no',
    when: 'Code of the app has a mistake: an operation, an HTTP function or a function of a declaration threw an error, or gave a call of the store what that does not accept. A write may have been applied.',
    action: 'Report it to the operator.',
    operator: 'The log names the code and where it failed. Correct it.',
    see: { 'Operations of your app': '../use-as-a-package.md#declare-an-operation' },
    shown: 'The request failed by a mistake of the app. The error was logged.',
  },
  busy: {
    status: 503,
    title: 'Service unavailable',
    retry: AFTER_WAITING,
    when: 'Other requests are writing the same rows, or the entity is being moved, or the first attempt of a repeated request is still running. Nothing was changed.',
    action: WAIT,
  },
  'storage-unavailable': {
    status: 503,
    title: 'Service unavailable',
    retry: AFTER_WAITING,
    when: 'Storage or the key vault does not respond, or throttles. A write of an entity was applied as a whole or not at all.',
    action: `${WAIT} Send a POST again with the same \`Idempotency-Key\`.`,
    see: {
      'Repeat a POST safely': 'http.md#repeat-a-post-safely',
      Throttling: '../operating.md#throttling',
    },
  },
  'identity-unavailable': {
    status: 503,
    title: 'Service unavailable',
    retry: AFTER_WAITING,
    when: 'The signing keys of the token issuer cannot be fetched, so no token can be checked.',
    action: WAIT,
    operator: 'Check that the app can reach `TOKEN_JWKS_URI`.',
  },
  'needs-repair': {
    status: 503,
    title: 'Service unavailable',
    retry: 'no: an operator must act',
    when: 'Stored data was lost, or changed outside the API, and cannot be read: a field has a value of another type, an encrypted field does not decrypt, the blob of a long text, a file or a list is missing, or a row of a wide or split entity or of a series. `field` names the field, if there is one.',
    action: 'Replace the field with PUT, or ask the operator to run the consistency check.',
    operator: 'Run `npm run verify`.',
    notes: [
      'In lists, and in the response to a write, the field is null; a field without a value is left out. A PUT that sends the null back is rejected.',
      'A list that would contain an entity without one of its rows is rejected as a whole: only the lost row knew its fields. `detail` has the keys of the entity if the caller may read all of its fields; the log has no keys. Read the other entities one by one. Such an entity is neither archived nor moved.',
      'With `select`, a list of a split entity needs only the rows of the selected fields. A list of a wide entity then succeeds only with key fields: any other field may be in the lost row.',
    ],
    see: {
      'Wide entities': 'model.md#wide-entities',
      'Vertical split': 'model.md#vertical-split',
      'Check consistency': '../operating.md#check-consistency',
    },
    shown: 'Stored data was lost, or changed outside the API. The operator must repair it.',
  },
  'not-built': {
    status: 503,
    title: 'Service unavailable',
    retry: 'later: an operator must act',
    when: 'An index or totals that the model declares are not built yet from the entities that were stored before. Writes go on, but a delete that would have to find the entities that refer to this one through the index. `detail` names the command that builds the index.',
    action: 'Retry later, or read by key, by partition or through another index.',
    operator: 'Run the command: `npm run reindex`.',
    see: { 'Build a new index': '../change-the-model.md#build-a-new-index' },
  },
  'not-provisioned': {
    status: 503,
    title: 'Service unavailable',
    retry: 'later: an operator must act',
    when: 'A table, queue or container of the app does not exist. A write of an entity was applied as a whole or not at all.',
    action: 'Retry later.',
    operator: '`/api/health` and the log of the app name what is missing and how to create it.',
    see: { 'Create what is missing': '../operating.md#create-what-is-missing' },
    shown: 'A storage resource of the app does not exist. The operator must create it; /api/health names it.',
  },
};
