import { constants, generateKeyPairSync, type KeyPairKeyObjectResult, privateDecrypt } from 'node:crypto';
import {
  createHttpHeaders,
  type HttpClient,
  type PipelineRequest,
  type PipelineResponse,
  RestError,
} from '@azure/core-rest-pipeline';

type Fault = number | 'reset' | 'silence';

const keyPairs: KeyPairKeyObjectResult[] = [];

/**
 * A stand-in for Azure Key Vault with the RSA key `data-keys` of the vault `contoso`. Like the service, it challenges
 * a request without a token and rejects one without its body.
 */
export function keyVault() {
  const versions = new Map<string, KeyPairKeyObjectResult>();
  const requests: string[] = [];
  let current = '';

  const vault = {
    /** The requests, as `GET <url>`, with ` without token` if the token was missing. */
    requests,
    /** The responses to the next requests with a token, before the stand-in returns success. */
    faults: [] as Fault[],
    /** The attributes of the current version. */
    attributes: { enabled: true } as { enabled: boolean; exp?: number; nbf?: number },
    kty: 'RSA',
    /** Creates a version and makes it the current one. */
    rotate(): string {
      current = (versions.size + 10).toString(16).padStart(32, '0');
      versions.set(current, keyPairOf(versions.size));
      return current;
    },
    httpClient: { sendRequest } satisfies HttpClient,
  };
  vault.rotate();
  return vault;

  async function sendRequest(request: PipelineRequest): Promise<PipelineResponse> {
    const token = request.headers.get('authorization');
    const url = new URL(request.url);
    requests.push(`${request.method} ${url.origin}${url.pathname}${token ? '' : ' without token'}`);
    // Delays vary, so that responses do not arrive in the order of the requests.
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 5));
    if (!token) return answer(request, 401, { error: { code: 'Unauthorized' } });
    const fault = vault.faults.shift();
    if (fault === 'reset') throw new RestError('reset', { code: 'ECONNRESET', request });
    if (fault === 'silence') return untilAborted(request);
    return fault ? answer(request, fault, { error: { code: 'Fault' } }) : answer(request, ...answerTo(request, url));
  }

  function answerTo(request: PipelineRequest, { pathname }: URL): [status: number, body: object] {
    const [, version = current, operation] =
      /^\/keys\/data-keys(?:\/([0-9a-f]+)(?:\/(\w+))?|\/?)$/.exec(pathname) ?? [];
    const keys = versions.get(version);
    if (!keys) return [404, { error: { code: 'KeyNotFound' } }];
    if (request.method === 'GET' && !operation) {
      const kid = `https://contoso.vault.azure.net/keys/data-keys/${version}`;
      const { n, e } = keys.publicKey.export({ format: 'jwk' });
      const key = vault.kty === 'RSA' ? { kid, kty: 'RSA', n, e } : { kid, kty: vault.kty };
      return [200, { key: { ...key, key_ops: ['wrapKey', 'unwrapKey'] }, attributes: vault.attributes }];
    }
    if (request.method === 'POST' && operation === 'unwrapkey') return unwrap(keys, request.body);
    return [405, {}];
  }
}

/** The pair of the nth version of every stand-in: a new pair for each test would be most of what the tests compute. */
function keyPairOf(nth: number): KeyPairKeyObjectResult {
  keyPairs[nth] ??= generateKeyPairSync('rsa', { modulusLength: 2048 });
  return keyPairs[nth];
}

function unwrap({ privateKey }: KeyPairKeyObjectResult, body: unknown): [status: number, body: object] {
  const { alg, value } = typeof body === 'string' ? JSON.parse(body) : {};
  try {
    if (alg !== 'RSA-OAEP-256') throw new Error('Another algorithm was expected.');
    const padding = constants.RSA_PKCS1_OAEP_PADDING;
    const key = privateDecrypt({ key: privateKey, padding, oaepHash: 'sha256' }, Buffer.from(value, 'base64url'));
    return [200, { kid: 'any', value: key.toString('base64url') }];
  } catch {
    return [400, { error: { code: 'BadParameter' } }];
  }
}

function answer(request: PipelineRequest, status: number, body: object) {
  const headers = createHttpHeaders({ 'content-type': 'application/json' });
  if (status === 401)
    headers.set(
      'www-authenticate',
      'Bearer authorization="https://login.microsoftonline.com/11111111-1111-1111-1111-111111111111", resource="https://vault.azure.net"',
    );
  if (status === 429) headers.set('retry-after-ms', '1');
  return { request, status, headers, bodyAsText: JSON.stringify(body) };
}

function untilAborted({ abortSignal }: PipelineRequest): Promise<never> {
  return new Promise((_, reject) => {
    const abort = () => reject(Object.assign(new Error('The operation was aborted.'), { name: 'AbortError' }));
    // An aborted signal dispatches no event.
    if (abortSignal?.aborted) abort();
    abortSignal?.addEventListener('abort', abort);
  });
}
