import type { CustomFetch } from 'openid-client';
import * as client from 'openid-client';
import { type OpenIdProof, type OpenIdProvider, type OpenIdRequest, ProviderUnavailable } from '../accounts/open-id.ts';

export interface OpenIdProviderOptions {
  /** `http` is allowed only for localhost. */
  readonly issuer: URL;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly label: string;
  /** Origins that the provider uses in addition to the issuer's. */
  readonly additionalOrigins: readonly string[];
  /** Called with an error code that contains no part of the response. */
  readonly onFault: (code: string) => void;
  readonly timeoutMs?: number;
}

/** Short, because a person is waiting. */
const TIMEOUT_MS = 5_000;
/** Lifetime of cached metadata. The library refetches unknown signing keys. */
const METADATA_MAX_AGE_MS = 60 * 60_000;
/** A sign-in at the provider counts as recent for this long. */
const FRESH_MAX_S = 10 * 60;

/**
 * Authorization code flow with PKCE, state and nonce. Verifies the token's issuer, audience, timestamps and signature.
 * Fetches metadata on the first sign-in.
 */
export function createOpenIdProvider(options: OpenIdProviderOptions): OpenIdProvider {
  const { issuer, label, additionalOrigins } = options;
  const origins = [issuer.origin, ...additionalOrigins];
  const readConfiguration = createCache(() => discover(options, origins), METADATA_MAX_AGE_MS);
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
          if (isUnavailable(fault)) throw new ProviderUnavailable('the provider does not respond');
          return undefined;
        },
      );
      return claims === undefined ? null : toProof(claims);
    },
  };
}

async function toParameters({ state, nonce, verifier, redirectUri, isFresh }: OpenIdRequest) {
  return {
    // Neither the email address nor the name is needed.
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
  const restrictedFetch = createRestrictedFetch({ origins, timeoutMs });
  // Verify the token's signature even though the token is received over TLS.
  const rules = [
    client.enableNonRepudiationChecks,
    ...(issuer.protocol === 'http:' ? [client.allowInsecureRequests] : []),
  ];
  const discovered = await client.discovery(issuer, clientId, undefined, client.None(), {
    execute: rules,
    [client.customFetch]: restrictedFetch,
  });
  const server = discovered.serverMetadata();
  if (!origins.includes(URL.parse(server.authorization_endpoint ?? '')?.origin ?? ''))
    throw new ProviderUnavailable('the authorization endpoint has an unknown origin');
  const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  const method = methods.includes('client_secret_basic') ? client.ClientSecretBasic : client.ClientSecretPost;
  const configuration = new client.Configuration(server, clientId, clientSecret, method(clientSecret));
  configuration[client.customFetch] = restrictedFetch;
  for (const rule of rules) rule(configuration);
  return configuration;
}

async function orUnavailable<T>(discovered: Promise<T>, { onFault }: OpenIdProviderOptions): Promise<T> {
  return discovered.catch((fault: unknown) => {
    onFault(codeOf(fault));
    // The person has not sent anything yet, so the error is the provider's.
    throw new ProviderUnavailable("the provider's metadata is unusable");
  });
}

const isUnavailable = (fault: unknown): boolean => causesOf(fault).some((each) => each instanceof ProviderUnavailable);

/** Returns the error code, which is safe to log. The library's messages and causes contain tokens and claims. */
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

/** Caches a result. Concurrent callers share one call. A failure is not cached. */
function createCache<T>(fetchValue: () => Promise<T>, maxAgeMs: number): () => Promise<T> {
  let cached: Promise<T> | null = null;
  let fetchedAt = 0;
  return () => {
    if (cached !== null && performance.now() < fetchedAt + maxAgeMs) return cached;
    const fetched = fetchValue();
    [cached, fetchedAt] = [fetched, performance.now()];
    fetched.catch(() => {
      if (cached === fetched) cached = null;
    });
    return fetched;
  };
}

/** About ten times the size of a large provider's metadata. */
const RESPONSE_BYTES_MAX = 512 * 1024;

type RequestOptions = Parameters<CustomFetch>[1];

/**
 * Creates a `fetch` that is restricted to the given origins, does not follow redirects, and limits time and size.
 * @throws ProviderUnavailable if there is no response or the status is 500 or higher
 */
function createRestrictedFetch({ origins, timeoutMs }: { origins: readonly string[]; timeoutMs: number }) {
  return async (address: string, { body, headers, method }: RequestOptions): Promise<Response> => {
    if (!origins.includes(new URL(address).origin))
      throw new ProviderUnavailable('the metadata contains an endpoint with an unknown origin');
    const { status, bytes, ...response } = await request(address, {
      method,
      headers,
      redirect: 'manual',
      // The library sends only URL-encoded forms.
      ...(body === undefined || body === null ? {} : { body: String(body) }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (status >= 500) throw new ProviderUnavailable(`the provider responded with status ${status}`);
    return new Response(bytes.length === 0 ? null : bytes, { status, headers: response.headers });
  };
}

async function request(address: string, options: RequestInit) {
  try {
    const response = await fetch(address, options);
    const { status, headers } = response;
    return { status, headers, bytes: await readAtMost(response, RESPONSE_BYTES_MAX) };
  } catch (cause) {
    if (cause instanceof ProviderUnavailable) throw cause;
    throw new ProviderUnavailable('the provider does not respond');
  }
}

async function readAtMost({ body }: Response, bytesMax: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    // Throwing out of the loop closes the connection.
    if (length > bytesMax) throw new ProviderUnavailable("the provider's response is too large");
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}
