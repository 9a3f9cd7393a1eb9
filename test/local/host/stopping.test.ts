import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { QueueServiceClient } from '@azure/storage-queue';
import { expect, test, vi } from 'vitest';
import { startHttpListener } from '../../../local/host/http-listener.ts';
import { testStorage } from '../../storage.ts';
import { HOST_KEY, startHost } from './host-process.ts';

const LARGE_BYTES = 64_000_000;
const HEADERS = { 'x-functions-key': HOST_KEY, 'content-type': 'application/json' };
const HEAD = Object.entries({ host: 'x', ...HEADERS, 'content-length': 2 }).map(([name, value]) => `${name}: ${value}`);
const POST = ['POST /admin/functions/x HTTP/1.1', ...HEAD, '', '{}'].join('\r\n');

const listen = () =>
  startHttpListener([], { port: 0, routePrefix: 'api', origins: [], key: HOST_KEY, runTimer: () => true });

/** Connects without waiting for the connection, and collects what the listener sends. */
function open(port: number) {
  const socket = connect(port, '127.0.0.1');
  const received = { text: '', error: undefined as unknown };
  socket.on('data', (bytes) => {
    received.text += bytes;
  });
  socket.on('error', (error) => {
    received.error = error;
  });
  return { socket, received, closed: once(socket, 'close').catch(() => undefined) };
}

/** Writes a request when the stop of the listener has begun. Each delay is shorter than the time that the listener waits for requests. */
const ARRIVALS: readonly (readonly [string, (socket: Socket) => void])[] = [
  ['has arrived', (socket) => socket.write(POST)],
  ['arrives soon', (socket) => setTimeout(() => socket.write(POST), 50)],
  [
    'arrives in parts',
    (socket) => {
      setTimeout(() => socket.write(POST.slice(0, 20)), 50);
      setTimeout(() => socket.write(POST.slice(20)), 120);
    },
  ],
  [
    'arrives while the process is stalled',
    (socket) =>
      setTimeout(() => {
        // Before the timers of the next turn, which are before its reads.
        setImmediate(() => {
          socket.write(POST);
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);
        });
      }, 50),
  ],
];

test.each(ARRIVALS)(
  'a request that %s on a kept-alive connection of a host that stops gets its response',
  async (_when, send) => {
    const listener = await listen();
    const { socket, received, closed } = open(listener.port);
    socket.write(POST);
    await once(socket, 'data');
    const stopped = listener.stop();
    send(socket);
    await Promise.all([stopped, closed]);
    expect(received.error).toBeUndefined();
    expect(received.text.match(/^HTTP\/1\.1 202 /gm)).toHaveLength(2);
    expect(received.text.match(/^connection: close\r$/gim)).toHaveLength(1);
  },
);

test('a connection that the kernel has accepted when the host stops is served', async () => {
  const listener = await listen();
  const first = open(listener.port);
  first.socket.write(POST);
  await once(first.socket, 'data');
  const clients = Array.from({ length: 5 }, () => open(listener.port));
  for (const { socket } of clients) socket.write(POST);
  // The sockets connect in the next tick. The listener accepts them in a later turn of the event loop.
  await new Promise((resolve) => process.nextTick(resolve));
  await Promise.all([listener.stop(), ...clients.map(({ closed }) => closed)]);
  for (const { received } of clients)
    expect(received).toEqual({ text: expect.stringContaining('HTTP/1.1 202 '), error: undefined });
});

test('a host that stops closes the connection of a request in progress, and connections without one', async () => {
  const listener = await listen();
  const [idle, silent, busy] = [open(listener.port), open(listener.port), open(listener.port)];
  idle.socket.write(POST);
  await once(idle.socket, 'data');
  busy.socket.write(POST.slice(0, -1));
  await sleep(10);
  const stopped = listener.stop();
  await Promise.all([idle.closed, silent.closed]);
  busy.socket.write('}');
  await Promise.all([stopped, busy.closed]);
  expect(busy.received).toEqual({
    text: expect.stringMatching(/^HTTP\/1\.1 202 (.*\r\n)*connection: close/i),
    error: undefined,
  });
  expect([idle, silent].map(({ received }) => received.error)).toEqual([undefined, undefined]);
});

/** Posts on one connection until a response ends it, and returns the number of responses. */
async function postContinuously(port: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let count = 1; ; count++) {
    const options = { port, host: '127.0.0.1', path: '/admin/functions/x', method: 'POST', headers: HEADERS, agent };
    const [response] = await once(request(options).end('{}'), 'response');
    await once(response.resume(), 'end');
    expect(response.statusCode).toBe(202);
    if (response.headers.connection === 'close') return count;
  }
}

test('no request of clients that post continuously is reset when hosts stop', { tags: ['slow'] }, async () => {
  for (let round = 0; round < 20; round++) {
    const counts = Array.from({ length: 15 }, async (_, number) => {
      const listener = await listen();
      const clients = Array.from({ length: 4 }, () => postContinuously(listener.port));
      for (let count = 0; count < 5 + number; count++) await turn();
      const [served] = await Promise.all([Promise.all(clients), listener.stop()]);
      return served;
    });
    for (const served of (await Promise.all(counts)).flat()) expect(served).toBeGreaterThan(0);
  }
});

test('a response that a client reads slowly arrives whole when the host stops', { tags: ['slow'] }, async () => {
  const host = await startHost({ TEST_STORAGE: testStorage(import.meta.url) });
  const { body } = await fetch(`${host.url}/api/large?bytes=${LARGE_BYTES}`);
  const reader = body?.getReader();
  let bytes = (await reader?.read())?.value?.length ?? 0;
  const ended = once(host.child, 'close');
  host.child.kill('SIGTERM');
  await vi.waitFor(() => expect(connectionOf(host.url)).rejects.toThrow('ECONNREFUSED'));
  for (let read = await reader?.read(); read?.value; read = await reader?.read()) bytes += read.value.length;
  expect(bytes).toBe(LARGE_BYTES);
  expect(await ended).toEqual([0, null]);
  expect(host.lines.filter((line) => line.includes('still in progress'))).toEqual([]);
});

test('SIGTERM waits for the queue message in progress, which is then deleted', async () => {
  const connection = testStorage(import.meta.url);
  const queue = QueueServiceClient.fromConnectionString(connection).getQueueClient('work');
  await queue.create();
  const host = await startHost({ TEST_STORAGE: connection });
  await queue.sendMessage(Buffer.from('{"slow":true}').toString('base64'));
  await host.logged('"slow":true');
  await host.stop();
  expect((await queue.getProperties()).approximateMessagesCount).toBe(0);
  expect(host.lines.filter((line) => line.includes('still in progress'))).toEqual([]);
});

/** Resolves if a new connection is accepted. */
async function connectionOf(url: string): Promise<void> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  await once(socket, 'connect');
  socket.destroy();
}
