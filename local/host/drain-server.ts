import { once } from 'node:events';
import type { Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';

/** A client that has its response sends its next request within this time, if it has one. */
const QUIET_MS = 100;

export interface ServerDrain {
  readonly isDraining: boolean;
  /** Call before a request is handled. */
  begin(response: ServerResponse): void;
  /** Accepts no more connections, and resolves when each open one is closed. Resets no request that has arrived. */
  drain(): Promise<void>;
}

/**
 * Closes a server without cutting requests off. `close` of `http.Server` destroys each connection without a request in progress: a request
 * that Node has not read yet is reset, and a response that a slow client reads is cut. It waits for clients to close the connection of a
 * request in progress, and connections on which no request has arrived.
 */
export function prepareDrain(server: Server): ServerDrain {
  const connections = new Set<Socket>();
  const responses = new Set<ServerResponse>();
  let accepted = 0;
  let isDraining = false;
  server.on('connection', (socket: Socket) => {
    accepted += 1;
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });

  /** The connections without a request in progress, and how many bytes each has sent. */
  function findIdle(): ReadonlyMap<Socket, number> {
    const busy = new Set([...responses].map(({ req }) => req.socket));
    return new Map([...connections].filter((one) => !busy.has(one)).map((one) => [one, one.bytesRead]));
  }

  return {
    get isDraining() {
      return isDraining;
    },
    begin(response) {
      responses.add(response);
      response.once('close', () => responses.delete(response));
      if (isDraining) response.setHeader('connection', 'close');
    },
    async drain() {
      isDraining = true;
      for (const response of responses) if (!response.headersSent) response.setHeader('connection', 'close');
      // Closing resets what the kernel has accepted, and Node accepts one connection in each turn.
      for (let before = -1; before !== accepted; ) {
        before = accepted;
        // The first may belong to the turn in which this began.
        await turn();
        await turn();
      }
      NetServer.prototype.close.call(server);
      while (connections.size > 0) {
        const idle = findIdle();
        await sleep(QUIET_MS);
        // After a stall of this process, the timer fires before what has arrived is read.
        await turn();
        const stillIdle = findIdle();
        for (const [socket, bytes] of idle) if (stillIdle.get(socket) === bytes) socket.destroy();
      }
      // Ends the search for late requests.
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}
