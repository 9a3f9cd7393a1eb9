import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { learnMessages } from '../local/walk/known-messages.ts';

/**
 * A loopback proxy between a functions host and its storage. The proxy counts the storage calls about one entity, and
 * can kill the host after storage completed a call and before the host receives the response. Paths, queries and
 * headers stay unchanged, so that signatures remain valid.
 */
interface FaultProxy {
  readonly connectionString: string;
  /** Starts to count calls that mention `about` or an id from a call that did; calls `kill` at the `at`-th call. */
  watch(about: string, at?: number, kill?: () => void): void;
  /** Rejects every call whose URL contains a text, as a storage account at its limit does. Undefined rejects none. */
  throttle(about: string | undefined): void;
  /** The number of watched calls. */
  readonly calls: number;
  /** True if no call is under way. */
  readonly isIdle: boolean;
  /** Milliseconds since the last watched call. */
  readonly quietFor: number;
  stop(): Promise<void>;
}

const SERVICES = ['Table', 'Queue', 'Blob'] as const;
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

export async function startFaultProxy(connectionString: string): Promise<FaultProxy> {
  const agent = new Agent({ keepAlive: true });
  let known = new Set<string>();
  let throttled: string | undefined;
  let calls = 0;
  let underWay = 0;
  let last = 0;
  let armed: { at: number; kill: () => void } | undefined;

  const mentions = (text: string) => [...known].some((token) => text.includes(token));
  const learn = (text: string) => {
    for (const [token] of text.matchAll(UUID)) known.add(token);
  };

  async function pass(target: URL, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await buffer(incoming);
    const { method, url = '', headers } = incoming;
    if (throttled && url.includes(throttled))
      return void outgoing.writeHead(503, { 'x-ms-error-code': 'ServerBusy' }).end();
    // Metadata names the owner of a blob.
    const metadata = Object.entries(headers).filter(([name]) => name.startsWith('x-ms-meta-'));
    const asked = `${decodeURIComponent(url)} ${metadata.join(' ')} ${body}`;
    const upstream = send({ agent, host: target.hostname, port: target.port, method, path: url, headers });
    upstream.end(body);
    const [reply] = (await once(upstream, 'response')) as [IncomingMessage];
    const answer = await buffer(reply);
    const { statusCode = 502 } = reply;
    const receipt = String(reply.headers['x-ms-popreceipt'] ?? '');
    if (statusCode < 300)
      learnMessages(
        { method: String(method), url: `${target.origin}${url}`, text: String(body) },
        receipt,
        String(answer),
      );
    // A poll is a step of the watched work only if its response contains a related message, whose ids are then
    // related too.
    const isPoll = method === 'GET' && /\/messages\?/.test(url);
    if (known.size > 0 && mentions(isPoll ? String(answer) : asked)) {
      learn(isPoll ? messagesWith(String(answer), mentions) : asked);
      if (/<MessageId>/.test(String(answer)) && !isPoll) learn(String(answer));
      calls += 1;
      last = performance.now();
      if (calls === armed?.at) {
        armed.kill();
        return void outgoing.destroy();
      }
    }
    outgoing.writeHead(reply.statusCode ?? 502, reply.rawHeaders).end(answer);
  }

  const servers = await Promise.all(
    SERVICES.map(async (service) => {
      const target = new URL(new RegExp(`${service}Endpoint=([^;]+)`).exec(connectionString)?.[1] ?? '');
      const server = createServer((incoming, outgoing) => {
        underWay += 1;
        // A killed host leaves its connections half open.
        pass(target, incoming, outgoing)
          .catch(() => outgoing.destroy())
          .finally(() => {
            underWay -= 1;
          });
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as { port: number };
      return { service, server, endpoint: `http://127.0.0.1:${port}${target.pathname}` };
    }),
  );
  let through = connectionString;
  for (const { service, endpoint } of servers)
    through = through.replace(new RegExp(`${service}Endpoint=[^;]+`), `${service}Endpoint=${endpoint}`);

  return {
    connectionString: through,
    watch(about, at, kill) {
      known = new Set([about]);
      calls = 0;
      last = performance.now();
      armed = at === undefined || !kill ? undefined : { at, kill };
    },
    throttle(about) {
      throttled = about;
    },
    get calls() {
      return calls;
    },
    get isIdle() {
      return underWay === 0;
    },
    get quietFor() {
      return performance.now() - last;
    },
    async stop() {
      agent.destroy();
      for (const { server } of servers) {
        server.closeAllConnections();
        server.close();
      }
    },
  };
}

/** Returns the related messages of a list; a batch can contain messages of other work. */
function messagesWith(answer: string, isAbout: (text: string) => boolean): string {
  return (answer.match(/<QueueMessage>[\s\S]*?<\/QueueMessage>/g) ?? []).filter(isAbout).join('\n');
}
