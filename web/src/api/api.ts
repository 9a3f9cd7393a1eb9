import { createClient } from '../../../lib/client/index.ts';
import { createTransport, type Reply, type Request, type TokenSource } from '../../../lib/client/transport.ts';
import { type Cost, createMeter, type Measured } from './cost.ts';
import { type EntityClient, type Explained, toClients } from './entity-client.ts';

/** The API of the app as the pages use it. */
export interface Api {
  /** The root, such as `https://example.azurewebsites.net/api`. */
  readonly url: string;
  /** The typed client of an entity; its types are open, because the model is known only at run time. */
  entity(name: string): EntityClient;
  /** Calls that return what they would read, write and send. */
  explain(name: string): Explained;
  /** Any other route, such as those of operators: `send({ method: 'GET', path: '/operations/audit?…' })`. */
  send(request: Request): Promise<Reply>;
  /** Runs calls that get the signal, and returns their result with what they cost. They belong to the page that is open now. */
  measure<Result>(work: (signal: AbortSignal) => Promise<Result>, outer?: AbortSignal): Promise<Measured<Result>>;
  /** Opens a page: calls `listener` after each of its requests. Returns how to stop. */
  onCost(page: string, listener: (cost: Cost) => void): () => void;
}

export function createApi({ url, token }: { readonly url: string; readonly token: TokenSource }): Api {
  const meter = createMeter(url);
  const options = { url, token, fetch: meter.fetch };
  // biome-ignore lint/suspicious/noExplicitAny: the model is known only at run time
  const { clients, explained } = toClients(createClient<any>(options));
  const { send } = createTransport(options, () => {});
  return { url, entity: clients, explain: explained, send, measure: meter.measure, onCost: meter.onCost };
}
