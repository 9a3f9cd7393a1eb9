import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';

/**
 * An idle connection is closed before the load balancer forgets it, which it does after four minutes
 * (https://learn.microsoft.com/azure/load-balancer/load-balancer-tcp-idle-timeout). A request on a forgotten connection gets no reply, and
 * some writes cannot be repeated then.
 */
const IDLE_MS = 60_000;

/** Returns the function that chooses the kept connections of a request, by its URL. */
export function createConnections(idleMs = IDLE_MS): (url: string) => HttpAgent {
  const options = { keepAlive: true, timeout: idleMs };
  const [http, https] = [new HttpAgent(options), new HttpsAgent(options)];
  return (url) => (url.startsWith('https:') ? https : http);
}
