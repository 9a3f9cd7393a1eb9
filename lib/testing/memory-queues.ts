import { randomBytes, randomUUID } from 'node:crypto';
import {
  type Clock,
  element,
  metadataOf,
  StorageRejection,
  type StorageReply,
  type StorageRequest,
  textOf,
  toDocument,
} from './storage-request.ts';

interface Message {
  readonly id: string;
  text: string;
  readonly insertedAt: number;
  readonly expiresAt: number;
  visibleAt: number;
  popReceipt: string;
  dequeueCount: number;
}

interface Queue {
  metadata: Record<string, string>;
  readonly messages: Map<string, Message>;
}

/** https://learn.microsoft.com/rest/api/storageservices/queue-service-rest-api */
const MAX_MESSAGE_BYTES = 65_536;
const MAX_MESSAGES = 32;
const MAX_HIDDEN_SECONDS = 7 * 86_400;
const HIDDEN_SECONDS = 30;
const LIFE_SECONDS = 7 * 86_400;
const NEVER = Date.parse('9999-12-31T23:59:59Z');
const PAGE_SIZE = 5_000;

/** Creates a Queue service in memory. Messages are received in the order in which they became visible. */
export function createMemoryQueues({ now }: { readonly now: Clock }) {
  const queues = new Map<string, Queue>();

  function handle(request: StorageRequest): StorageReply {
    const { method, path, query, headers } = request;
    if (!headers.get('authorization'))
      throw new StorageRejection(403, 'AuthenticationFailed', 'The request has no account key.');
    const [name = '', messages, id] = path.split('/');
    if (name === '' && query.get('comp') === 'list' && method === 'GET') return list(query);
    const route = `${method} ${messages === undefined ? '' : 'messages'}${id === undefined ? '' : '/id'}`;
    switch (route) {
      case 'PUT ':
        return query.get('comp') === 'metadata' ? setMetadata(request, open(name)) : create(request, name);
      case 'DELETE ':
        open(name);
        queues.delete(name);
        return { status: 204 };
      case 'GET ':
      case 'HEAD ':
        return describe(open(name));
      case 'POST messages':
        return send(request, open(name));
      case 'GET messages':
        return query.get('peekonly') === 'true' ? peek(query, open(name)) : receive(query, open(name));
      case 'DELETE messages':
        open(name).messages.clear();
        return { status: 204 };
      case 'PUT messages/id':
        return update(request, open(name), id ?? '');
      case 'DELETE messages/id':
        return remove(query, open(name), id ?? '');
      default:
        throw new StorageRejection(405, 'UnsupportedHttpVerb', `The stand-in does not implement ${route}.`);
    }
  }

  function open(name: string): Queue {
    const queue = queues.get(name);
    if (!queue) throw new StorageRejection(404, 'QueueNotFound', 'The specified queue does not exist.');
    for (const [id, { expiresAt }] of queue.messages) if (expiresAt <= now()) queue.messages.delete(id);
    return queue;
  }

  function list(query: URLSearchParams): StorageReply {
    const [prefix, marker] = [query.get('prefix') ?? '', query.get('marker') ?? ''];
    const size = Number(query.get('maxresults') ?? PAGE_SIZE);
    const names = [...queues.keys()].filter((name) => name.startsWith(prefix) && name >= marker).sort();
    const found = names.slice(0, size).map((name) => element('Queue', element('Name', name)));
    const next = element('NextMarker', names[size]);
    return xml(200, element('EnumerationResults', element('Prefix', prefix), element('Queues', ...found), next));
  }

  function create({ headers }: StorageRequest, name: string): StorageReply {
    if (name.length < 3 || name.length > 63)
      throw new StorageRejection(400, 'OutOfRangeInput', 'The length of the name is not within the limits.');
    if (!/^[a-z\d]+(-[a-z\d]+)*$/.test(name))
      throw new StorageRejection(
        400,
        'InvalidResourceName',
        'The specified resource name contains invalid characters.',
      );
    const metadata = metadataOf(headers);
    const known = queues.get(name);
    if (!known) queues.set(name, { metadata, messages: new Map() });
    else if (JSON.stringify(known.metadata) !== JSON.stringify(metadata))
      throw new StorageRejection(409, 'QueueAlreadyExists', 'The specified queue already exists.');
    return { status: known ? 204 : 201 };
  }

  function setMetadata({ headers }: StorageRequest, queue: Queue): StorageReply {
    queue.metadata = metadataOf(headers);
    return { status: 204 };
  }

  function describe({ metadata, messages }: Queue): StorageReply {
    return { status: 200, headers: { ...metadata, 'x-ms-approximate-messages-count': String(messages.size) } };
  }

  function send({ query, body }: StorageRequest, { messages }: Queue): StorageReply {
    const text = textOfMessage(body);
    const life = numberOf(query, 'messagettl', LIFE_SECONDS);
    if (life !== -1 && life < 1) throw invalid('messagettl');
    const hidden = numberOf(query, 'visibilitytimeout', 0, { from: 0, to: MAX_HIDDEN_SECONDS });
    if (life !== -1 && hidden >= life) throw invalid('visibilitytimeout');
    const insertedAt = now();
    const message: Message = {
      ...{ id: randomUUID(), text, insertedAt, dequeueCount: 0, popReceipt: newReceipt() },
      expiresAt: life === -1 ? NEVER : insertedAt + life * 1_000,
      visibleAt: insertedAt + hidden * 1_000,
    };
    messages.set(message.id, message);
    return xml(201, element('QueueMessagesList', format(message, ['PopReceipt', 'TimeNextVisible'])));
  }

  function receive(query: URLSearchParams, queue: Queue): StorageReply {
    const hidden = numberOf(query, 'visibilitytimeout', HIDDEN_SECONDS, { from: 1, to: MAX_HIDDEN_SECONDS });
    const received = visible(query, queue).map((message) => {
      Object.assign(message, {
        visibleAt: now() + hidden * 1_000,
        popReceipt: newReceipt(),
        dequeueCount: message.dequeueCount + 1,
      });
      return format(message, ['PopReceipt', 'TimeNextVisible', 'DequeueCount', 'MessageText']);
    });
    return xml(200, element('QueueMessagesList', ...received));
  }

  function peek(query: URLSearchParams, queue: Queue): StorageReply {
    const seen = visible(query, queue).map((message) => format(message, ['DequeueCount', 'MessageText']));
    return xml(200, element('QueueMessagesList', ...seen));
  }

  function visible(query: URLSearchParams, { messages }: Queue): Message[] {
    const count = numberOf(query, 'numofmessages', 1, { from: 1, to: MAX_MESSAGES });
    const found = [...messages.values()].filter(({ visibleAt }) => visibleAt <= now());
    return found.toSorted((one, other) => one.visibleAt - other.visibleAt).slice(0, count);
  }

  function update({ query, body }: StorageRequest, queue: Queue, id: string): StorageReply {
    const hidden = numberOf(query, 'visibilitytimeout', Number.NaN, { from: 0, to: MAX_HIDDEN_SECONDS });
    const message = requireMessage(query, queue, id);
    const text = body.length > 0 ? textOfMessage(body) : message.text;
    Object.assign(message, { text, visibleAt: now() + hidden * 1_000, popReceipt: newReceipt() });
    const headers = { 'x-ms-popreceipt': message.popReceipt, 'x-ms-time-next-visible': formatTime(message.visibleAt) };
    return { status: 204, headers };
  }

  function remove(query: URLSearchParams, queue: Queue, id: string): StorageReply {
    requireMessage(query, queue, id);
    queue.messages.delete(id);
    return { status: 204 };
  }

  return { handle };
}

function requireMessage(query: URLSearchParams, { messages }: Queue, id: string): Message {
  const message = messages.get(id);
  if (!message) throw new StorageRejection(404, 'MessageNotFound', 'The specified message does not exist.');
  if (message.popReceipt !== query.get('popreceipt'))
    throw new StorageRejection(
      400,
      'PopReceiptMismatch',
      'The specified pop receipt did not match the pop receipt for a dequeued message.',
    );
  return message;
}

function textOfMessage(body: Buffer): string {
  const text = textOf(body.toString(), 'MessageText');
  if (text === undefined)
    throw new StorageRejection(400, 'InvalidXmlDocument', 'XML specified is not syntactically valid.');
  if (Buffer.byteLength(text) > MAX_MESSAGE_BYTES)
    throw new StorageRejection(
      413,
      'RequestBodyTooLarge',
      'The request body is too large and exceeds the maximum permissible limit.',
    );
  return text;
}

type Detail = 'PopReceipt' | 'TimeNextVisible' | 'DequeueCount' | 'MessageText';

function format(
  { id, insertedAt, expiresAt, visibleAt, popReceipt, dequeueCount, text }: Message,
  details: readonly Detail[],
) {
  const values: Record<Detail, string> = {
    PopReceipt: popReceipt,
    TimeNextVisible: formatTime(visibleAt),
    DequeueCount: String(dequeueCount),
    MessageText: text,
  };
  return element(
    'QueueMessage',
    element('MessageId', id),
    element('InsertionTime', formatTime(insertedAt)),
    element('ExpirationTime', formatTime(expiresAt)),
    ...details.map((name) => element(name, values[name])),
  );
}

function numberOf(
  query: URLSearchParams,
  name: string,
  otherwise: number,
  { from, to }: { readonly from: number; readonly to: number } = {
    from: Number.NEGATIVE_INFINITY,
    to: Number.POSITIVE_INFINITY,
  },
): number {
  const text = query.get(name);
  const value = text === null ? otherwise : Number(text);
  if (text === null && Number.isNaN(otherwise))
    throw new StorageRejection(400, 'MissingRequiredQueryParameter', `${name} is required.`);
  if (!Number.isInteger(value) || value < from || value > to) throw outOfRange(name);
  return value;
}

function outOfRange(name: string): StorageRejection {
  return new StorageRejection(
    400,
    'OutOfRangeQueryParameterValue',
    `The query parameter ${name} is outside the permissible range.`,
  );
}

function invalid(name: string): StorageRejection {
  return new StorageRejection(
    400,
    'InvalidQueryParameterValue',
    `The value of the query parameter ${name} is invalid.`,
  );
}

function newReceipt(): string {
  return randomBytes(12).toString('base64');
}

function formatTime(time: number): string {
  return new Date(time).toUTCString();
}

function xml(status: number, root: ReturnType<typeof element>): StorageReply {
  return { status, headers: { 'content-type': 'application/xml' }, body: toDocument(root) };
}
