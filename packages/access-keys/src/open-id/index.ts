import type { CustomFetch } from 'openid-client';
import * as client from 'openid-client';
import { type OpenIdProof, type OpenIdProvider, type OpenIdRequest, ProviderUnavailable } from '../accounts/open-id.ts';

export interface OpenIdProviderOptions {
  /** `http` only for the local machine. */
  readonly issuer: URL;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly label: string;
  /** Further origins of the provider. */
  readonly alsoAt: readonly string[];
  /** Called with a code that contains nothing of the response. */
  readonly onFault: (code: string) => void;
  readonly timeoutMs?: number;
}

/** A person waits for it. */
const TIMEOUT_MS = 5_000;
/** For metadata. The library refetches unknown signing keys. */
const KEPT_MS = 60 * 60_000;
/** A sign-in at the provider counts as fresh for this time. */
const FRESH_MAX_S = 10 * 60;

/**
 * Authorization code with PKCE, state and nonce. The token's issuer, audience, times and signature are checked. Metadata
 * is fetched at the first sign-in.
 */
export function createOpenIdProvider(options: OpenIdProviderOptions): OpenIdProvider {
  const { issuer, label, alsoAt } = options;
  const origins = [issuer.origin, ...alsoAt];
  const readConfiguration = createCache(() => discover(options, origins), KEPT_MS);
  return {
    label,
    origins,
    authorization: async (request) => {
      const configuration = await orUnavailable(readConfiguration(), options);
      return client.buildAuthorizationUrl(configuration, await toParameters(request));
    },
    prove: async (callback, request) => {
      const configuration = await orUnavailable(readConfiguration(), options);
      const granted = client.authorizationCodeGrant(configuration, callback, {
        expectedState: request.state,
        expectedNonce: request.nonce,
        pkceCodeVerifier: request.verifier,
        idTokenExpected: true,
        ...(request.isFresh ? { maxAge: FRESH_MAX_S } : {}),
      });
      const claims = await granted.then(
        (tokens) => tokens.claims(),
        (fault: unknown) => {
          options.onFault(codeOf(fault));
          if (isUnavailable(fault)) throw new ProviderUnavailable('the provider does not answer');
          return undefined;
        },
      );
      return claims === undefined ? null : toProof(claims);
    },
  };
}

async function toParameters({ state, nonce, verifier, redirectUri, isFresh }: OpenIdRequest) {
  return {
    // Neither mail address nor name is needed.
    scope: 'openid',
    redirect_uri: redirectUri,
    state,
    nonce,
    code_challenge_method: 'S256',
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    ...(isFresh ? { prompt: 'login', max_age: String(FRESH_MAX_S) } : {}),
  };
}

function toProof({ iss, sub, auth_time: authenticatedS }: client.IDToken): OpenIdProof {
  const authenticatedAt = typeof authenticatedS === 'number' ? authenticatedS * 1000 : null;
  return { openId: { issuer: iss, subject: sub }, authenticatedAt };
}

async function discover(options: OpenIdProviderOptions, origins: readonly string[]): Promise<client.Configuration> {
  const { issuer, clientId, clientSecret, timeoutMs = TIMEOUT_MS } = options;
  const boundFetch = createBoundFetch({ origins, timeoutMs });
  // The token's signature is checked although it is received over TLS.
  const rules = [
    client.enableNonRepudiationChecks,
    ...(issuer.protocol === 'http:' ? [client.allowInsecureRequests] : []),
  ];
  const found = await client.discovery(issuer, clientId, undefined, client.None(), {
    execute: rules,
    [client.customFetch]: boundFetch,
  });
  const server = found.serverMetadata();
  if (!origins.includes(URL.parse(server.authorization_endpoint ?? '')?.origin ?? ''))
    throw new ProviderUnavailable('the authorization endpoint is at an unknown origin');
  const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  const method = methods.includes('client_secret_basic') ? client.ClientSecretBasic : client.ClientSecretPost;
  const configuration = new client.Configuration(server, clientId, clientSecret, method(clientSecret));
  configuration[client.customFetch] = boundFetch;
  for (const rule of rules) rule(configuration);
  return configuration;
}

async function orUnavailable<T>(discovered: Promise<T>, { onFault }: OpenIdProviderOptions): Promise<T> {
  return discovered.catch((fault: unknown) => {
    onFault(codeOf(fault));
    // No person has sent anything yet, so the fault is the provider's.
    throw new ProviderUnavailable('the metadata of the provider is unusable');
  });
}

const isUnavailable = (fault: unknown): boolean => causesOf(fault).some((each) => each instanceof ProviderUnavailable);

/** The part of a fault that may be logged: messages and causes of the library contain tokens and claims. */
function codeOf(fault: unknown): string {
  for (const each of causesOf(fault)) {
    const { error, code, name } = each as { error?: unknown; code?: unknown; name?: unknown };
    if (each instanceof ProviderUnavailable) return each.message;
    for (const text of [error, code]) if (typeof text === 'string' && /^[\w-]{1,60}$/.test(text)) return text;
    if (each instanceof Error && (each as { cause?: unknown }).cause === undefined) return String(name);
  }
  return 'UNKNOWN';
}

function causesOf(fault: unknown): unknown[] {
  const causes: unknown[] = [];
  for (let each = fault; each instanceof Error && causes.length < 10; each = each.cause) causes.push(each);
  return causes;
}

/** Caches a result. Concurrent callers share a call; a failed one is not cached. */
function createCache<T>(fetchValue: () => Promise<T>, keptMs: number): () => Promise<T> {
  let cached: Promise<T> | null = null;
  let fetchedAt = 0;
  return () => {
    if (cached !== null && performance.now() < fetchedAt + keptMs) return cached;
    const fetched = fetchValue();
    [cached, fetchedAt] = [fetched, performance.now()];
    fetched.catch(() => {
      if (cached === fetched) cached = null;
    });
    return fetched;
  };
}

/** Ten times the size of a large provider's metadata. */
const ANSWER_BYTES_MAX = 512 * 1024;

type RequestOptions = Parameters<CustomFetch>[1];

/**
 * A `fetch` for these origins only, without redirects, with bounds of time and size.
 * @throws ProviderUnavailable without an answer, and for a status from 500
 */
function createBoundFetch({ origins, timeoutMs }: { origins: readonly string[]; timeoutMs: number }) {
  return async (address: string, { body, headers, method }: RequestOptions): Promise<Response> => {
    if (!origins.includes(new URL(address).origin))
      throw new ProviderUnavailable('the metadata has an endpoint at an unknown origin');
    const { status, bytes, ...answer } = await request(address, {
      method,
      headers,
      redirect: 'manual',
      // Its forms are texts.
      ...(body === undefined || body === null ? {} : { body: String(body) }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (status >= 500) throw new ProviderUnavailable(`the provider answers ${status}`);
    return new Response(bytes.length === 0 ? null : bytes, { status, headers: answer.headers });
  };
}

async function request(address: string, options: RequestInit) {
  try {
    const answer = await fetch(address, options);
    return { status: answer.status, headers: answer.headers, bytes: await readAtMost(answer, ANSWER_BYTES_MAX) };
  } catch (cause) {
    if (cause instanceof ProviderUnavailable) throw cause;
    throw new ProviderUnavailable('the provider does not answer');
  }
}

async function readAtMost({ body }: Response, bytesMax: number): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of body ?? []) {
    length += part.length;
    // Leaving the loop closes the connection.
    if (length > bytesMax) throw new ProviderUnavailable('the response of the provider is too large');
    parts.push(part);
  }
  return new Uint8Array(Buffer.concat(parts));
}
