import { randomUUID } from 'node:crypto';
import { createHttpHeaders } from '@azure/core-rest-pipeline';
import { StorageRejection, type StorageReply, type StorageRequest } from './storage-request.ts';

const MAX_ACTIONS = 100;

interface Steps {
  keyOf(action: StorageRequest): { readonly partition: string; readonly row: string };
  run(action: StorageRequest): StorageReply;
  rollBack(): void;
}

/**
 * Runs the actions of an entity group transaction, of which all or none have an effect.
 * https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions
 */
export function runTransaction(request: StorageRequest, { keyOf, run, rollBack }: Steps): StorageReply {
  const actions = parseActions(request);
  const replies: StorageReply[] = [];
  try {
    checkActions(actions, keyOf);
    for (const action of actions) replies.push(run(action));
  } catch (error) {
    rollBack();
    if (!(error instanceof StorageRejection)) throw error;
    const { status, code, message } = error;
    const ofAction = /^\d+:/.test(message) ? message : `${replies.length}:${message}`;
    replies.splice(0, replies.length, toTableError(new StorageRejection(status, code, ofAction)));
  }
  const [batch, changes] = [`batchresponse_${randomUUID()}`, `changesetresponse_${randomUUID()}`];
  const separated = replies.map((reply) => `--${changes}\r\n${formatPart(reply)}\r\n`).join('');
  return {
    status: 202,
    headers: { 'content-type': `multipart/mixed; boundary=${batch}` },
    body: `--${batch}\r\nContent-Type: multipart/mixed; boundary=${changes}\r\n\r\n${separated}--${changes}--\r\n--${batch}--\r\n`,
  };
}

function parseActions({ body, headers, query, origin }: StorageRequest): StorageRequest[] {
  const text = body.toString();
  const [, boundary = ''] = /boundary=(changeset_\S+)/.exec(text) ?? [];
  const parts = text.split(`--${boundary}`).slice(1, -1);
  // Each action has the authorization of the transaction.
  const [authorization, accept] = [headers.get('authorization'), headers.get('accept')];
  return parts.map((part) => {
    const [, method = '', url = '', head = '', content = ''] =
      /\r?\n([A-Z]+) (\S+) HTTP\/1\.1\r?\n([\s\S]*?)\r?\n\r?\n([\s\S]*)$/.exec(part) ?? [];
    const own = head.split(/\r?\n/).flatMap((line) => {
      const [, name = '', value = ''] = /^([^:]+):\s*(.*)$/.exec(line) ?? [];
      return name ? [[name, value]] : [];
    });
    const target = new URL(url);
    return {
      method,
      path: decodeURIComponent(target.pathname.split('/').slice(2).join('/')),
      query: new URLSearchParams([...query, ...target.searchParams]),
      headers: createHttpHeaders({
        ...(accept && { accept }),
        ...Object.fromEntries(own),
        ...(authorization && { authorization }),
      }),
      body: Buffer.from(content.trim()),
      origin,
    };
  });
}

function checkActions(actions: readonly StorageRequest[], keyOf: Steps['keyOf']): void {
  if (actions.length > MAX_ACTIONS)
    throw new StorageRejection(
      400,
      'InvalidInput',
      `${MAX_ACTIONS - 1}:The batch request operation exceeds the maximum 100 changes per change set.`,
    );
  const keys = actions.map(keyOf);
  const rows = new Set<string>();
  for (const [index, { partition, row }] of keys.entries()) {
    if (partition !== keys[0]?.partition)
      throw new StorageRejection(
        400,
        'CommandsInBatchActOnDifferentPartitions',
        `${index}:All commands in a batch must operate on same entity group.`,
      );
    if (rows.has(row))
      throw new StorageRejection(
        400,
        'InvalidDuplicateRow',
        `${index}:A command with RowKey '${row}' is already present in the batch. An entity can appear only once in a batch.`,
      );
    rows.add(row);
  }
}

const REASONS: Readonly<Record<number, string>> = {
  201: 'Created',
  204: 'No Content',
  400: 'Bad Request',
  404: 'Not Found',
  409: 'Conflict',
  412: 'Precondition Failed',
};

function formatPart({ status, headers = {}, body = '' }: StorageReply): string {
  const lines = Object.entries({ 'Content-Type': body ? 'application/json' : undefined, ETag: headers.etag });
  const head = lines.flatMap(([name, value]) => (value ? [`${name}: ${value}\r\n`] : [])).join('');
  return `Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 ${status} ${REASONS[status] ?? ''}\r\n${head}\r\n${body}\r\n`;
}

/** Formats a rejection as the Table service does. */
export function toTableError({ status, code, message }: StorageRejection): StorageReply {
  const body = JSON.stringify({ 'odata.error': { code, message: { lang: 'en-US', value: message } } });
  return {
    status,
    headers: { 'x-ms-error-code': code, 'content-type': 'application/json;odata=minimalmetadata' },
    body,
  };
}
