import type { CustomFetch } from 'openid-client';
import * as client from 'openid-client';
import { type OpenIdProof, type OpenIdProvider, type OpenIdRequest, ProviderUnavailable } from '../accounts/open-id.ts';

export interface OpenIdProviderOptions {
  /** Issuer of the provider; `http` only for the local machine. */
  readonly issuer: URL;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Name of the provider for people. */
  readonly label: string;
  /** Further origins of the provider: some use several. */
  readonly alsoAt: readonly string[];
  /** Called with a code for what was wrong with an answer. The code contains nothing of the answer. */
  readonly onFault: (code: string) => void;
  /** Time limit of one request to the provider, in milliseconds. */
  readonly timeoutMs?: number;
}

/** A person waits for it with an open page. */
const TIMEOUT_MS = 5_000;
/** A provider's metadata seldom changes. A signing key that it does not list yet makes it be asked again at once. */
const KEPT_MS = 60 * 60_000;
/** How long a sign-in at the provider counts as fresh. */
const FRESH_MAX_S = 10 * 60;

/**
 * Opens a provider of OpenID Connect, by `openid-client`: authorization code with PKCE, state and nonce. The token's
 * issuer, audience, times and signature are checked. The provider's metadata is fetched at the first sign-in. Nothing
 * else is asked of it, and nobody else is asked.
 */
export function createOpenIdProvider(options: OpenIdProviderOptions): OpenIdProvider {
  const { issuer, label, alsoAt } = options;
  const origins = [issuer.origin, ...alsoAt];
  const configurationOf = createKept(() => discover(options, origins), KEPT_MS);
  return {
    label,
    origins,
    authorization: async (question) => {
      const configuration = await orUnavailable(configurationOf(), options);
      return client.buildAuthorizationUrl(configuration, await toParameters(question));
    },
    prove: async (cameBack, question) => {
      const configuration = await orUnavailable(configurationOf(), options);
      const granted = client.authorizationCodeGrant(configuration, cameBack, {
        expectedState: question.state,
        expectedNonce: question.nonce,
        pkceCodeVerifier: question.verifier,
        idTokenExpected: true,
        ...(question.isFresh ? { maxAge: FRESH_MAX_S } : {}),
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
    // Neither mail address nor name is requested, since nothing depends on them.
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

/** Fetches the provider's metadata and configures the client. */
async function discover(options: OpenIdProviderOptions, origins: readonly string[]): Promise<client.Configuration> {
  const { issuer, clientId, clientSecret, timeoutMs = TIMEOUT_MS } = options;
  const ask = createBoundFetch({ origins, timeoutMs });
  // The token comes straight from the provider over TLS. Its signature is checked all the same.
  const rules = [
    client.enableNonRepudiationChecks,
    ...(issuer.protocol === 'http:' ? [client.allowInsecureRequests] : []),
  ];
  const found = await client.discovery(issuer, clientId, undefined, client.None(), {
    execute: rules,
    [client.customFetch]: ask,
  });
  const server = found.serverMetadata();
  if (!origins.includes(URL.parse(server.authorization_endpoint ?? '')?.origin ?? ''))
    throw new ProviderUnavailable('the provider sends people to an address that is not known as its own');
  const ways = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  const way = ways.includes('client_secret_basic') ? client.ClientSecretBasic : client.ClientSecretPost;
  const configuration = new client.Configuration(server, clientId, clientSecret, way(clientSecret));
  configuration[client.customFetch] = ask;
  for (const rule of rules) rule(configuration);
  return configuration;
}

async function orUnavailable<T>(asked: Promise<T>, { onFault }: OpenIdProviderOptions): Promise<T> {
  return asked.catch((fault: unknown) => {
    onFault(codeOf(fault));
    // Whatever went wrong concerns the provider only: no person has sent anything yet.
    throw new ProviderUnavailable('the provider says nothing of itself that can be used');
  });
}

function isUnavailable(fault: unknown): boolean {
  return causesOf(fault).some((each) => each instanceof ProviderUnavailable);
}

/** The part of a fault that may be logged: messages and causes of the library quote tokens and claims. */
function codeOf(fault: unknown): string {
  for (const each of causesOf(fault)) {
    const { error, code, name } = each as { error?: unknown; code?: unknown; name?: unknown };
    if (each instanceof ProviderUnavailable) return each.message;
    for (const word of [error, code]) if (typeof word === 'string' && /^[\w-]{1,60}$/.test(word)) return word;
    if (each instanceof Error && (each as { cause?: unknown }).cause === undefined) return String(name);
  }
  return 'UNKNOWN';
}

function causesOf(fault: unknown): unknown[] {
  const causes: unknown[] = [];
  for (let each = fault; each instanceof Error && causes.length < 10; each = each.cause) causes.push(each);
  return causes;
}

/**
 * Caches what `ask` returns for a while. Callers that come while it runs share the same call. A call that failed is not
 * cached: the next caller asks again.
 */
function createKept<T>(ask: () => Promise<T>, keptMs: number): () => Promise<T> {
  let kept: Promise<T> | null = null;
  let askedAt = 0;
  return () => {
    if (kept !== null && performance.now() < askedAt + keptMs) return kept;
    const asked = ask();
    [kept, askedAt] = [asked, performance.now()];
    asked.catch(() => {
      if (kept === asked) kept = null;
    });
    return asked;
  };
}

interface BoundFetchOptions {
  /** What may be asked. */
  readonly origins: readonly string[];
  readonly timeoutMs: number;
}

/** Ten times the size of a large provider's metadata. */
const ANSWER_BYTES_MAX = 512 * 1024;

/** What the library says of a request. */
type Requested = Parameters<CustomFetch>[1];

/**
 * Creates a `fetch` that asks only the provider, follows no redirect elsewhere, and bounds both time and size of the
 * answer.
 * @returns throws ProviderAway when no answer comes, and for a status of 500 and above
 */
function createBoundFetch({ origins, timeoutMs }: BoundFetchOptions) {
  return async (address: string, { body, headers, method }: Requested): Promise<Response> => {
    if (!origins.includes(new URL(address).origin))
      throw new ProviderUnavailable('the provider names an address that is not known as its own');
    const { status, bytes, ...answer } = await request(address, {
      method,
      headers,
      redirect: 'manual',
      // The forms that it sends are texts.
      ...(body === undefined || body === null ? {} : { body: String(body) }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (status >= 500) throw new ProviderUnavailable(`the provider answers ${status}`);
    return new Response(bytes.length === 0 ? null : bytes, { status, headers: answer.headers });
  };
}

async function request(address: string, request: RequestInit) {
  try {
    const answer = await fetch(address, request);
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
    if (length > bytesMax) throw new ProviderUnavailable('the provider answers more than anybody reads');
    parts.push(part);
  }
  return new Uint8Array(Buffer.concat(parts));
}
