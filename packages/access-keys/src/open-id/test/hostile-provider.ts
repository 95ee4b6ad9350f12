import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** Ways in which the provider misbehaves. Absent members mean correct behaviour. */
export interface Overrides {
  /** Overrides metadata members. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Overrides redirect parameters; null removes a parameter. */
  readonly redirect?: Readonly<Record<string, string | null>>;
  /** Overrides token claims; undefined removes a claim. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Overrides token header members. */
  readonly header?: Readonly<Record<string, unknown>>;
  /** Signs the token with an unpublished key, or not at all. */
  readonly signature?: 'another key' | 'none';
  /** Replaces every response with silence, this status, or a redirect to this URL. */
  readonly instead?: 'silence' | number | URL;
}

/** An in-process OpenID Connect provider that can misbehave. */
export interface HostileProvider {
  readonly issuer: URL;
  readonly client: { readonly clientId: string; readonly clientSecret: string };
  /** Subject for subsequent sign-ins. */
  subject: string;
  overrides: Overrides;
  /** Requested paths, in order. */
  readonly requests: string[];
  /** Signs in at the authorization URL and returns the redirect URL. */
  visit(authorization: URL): URL;
  close(): Promise<void>;
}

interface Grant {
  readonly challenge: string;
  readonly nonce: string;
  readonly redirectUri: string;
  readonly subject: string;
}

const CLIENT = { clientId: 'a portal', clientSecret: 's3cret: with + and /' };
const createPair = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });

/** Like a real provider, accepts each code once and verifies PKCE, the client secret and the redirect URI. */
export async function openHostileProvider(): Promise<HostileProvider> {
  const [published, unpublished] = [createPair(), createPair()];
  const grants = new Map<string, Grant>();
  const server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const issuer = new URL(`http://localhost:${(server.address() as AddressInfo).port}`);
  const at = (path: string) => new URL(path, issuer).href;

  const provider: HostileProvider = {
    issuer,
    client: CLIENT,
    subject: 'person',
    overrides: {},
    requests: [],
    visit: (authorization) => {
      const code = randomUUID();
      grants.set(code, toGrant(authorization, provider.subject));
      return toRedirect(authorization, { code, iss: issuer.href, ...provider.overrides.redirect });
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((done) => server.close(() => done()));
    },
  };
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { instead } = provider.overrides;
    const path = new URL(request.url ?? '/', issuer).pathname;
    provider.requests.push(path);
    if (instead === 'silence') return;
    const send = (status: number, body: object) =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (instead instanceof URL) return void response.writeHead(307, { location: instead.href }).end();
    if (instead !== undefined) return send(instead, { error: 'requested' });
    if (path === '/.well-known/openid-configuration') return send(200, metadataOf(at, provider.overrides));
    if (path === '/jwks') return send(200, { keys: [toJwk(published.publicKey)] });
    if (path !== '/token') return send(404, {});
    const form = new URLSearchParams(await text(request));
    const grant = grants.get(form.get('code') ?? '');
    grants.delete(form.get('code') ?? '');
    if (grant === undefined || !isValidExchange(request, form, grant)) return send(400, { error: 'invalid_grant' });
    const { signature } = provider.overrides;
    const key = signature === 'none' ? null : signature === undefined ? published.privateKey : unpublished.privateKey;
    const token = toToken({ claims: claimsOf(grant, provider), header: provider.overrides.header ?? {}, key });
    send(200, { access_token: 'unused', token_type: 'Bearer', expires_in: 60, id_token: token });
  };
  return provider;
}

function toGrant({ searchParams: wanted }: URL, subject: string): Grant {
  const [challenge, nonce] = [wanted.get('code_challenge') ?? '', wanted.get('nonce') ?? ''];
  return { challenge, nonce, redirectUri: wanted.get('redirect_uri') ?? '', subject };
}

function toRedirect({ searchParams: wanted }: URL, overrides: Readonly<Record<string, string | null>>): URL {
  const redirect = new URL(wanted.get('redirect_uri') ?? '');
  for (const [name, value] of Object.entries({ state: wanted.get('state'), ...overrides }))
    if (value !== null) redirect.searchParams.set(name, value);
  return redirect;
}

function metadataOf(at: (path: string) => string, { metadata }: Overrides): object {
  return {
    issuer: at('/'),
    authorization_endpoint: at('/authorize'),
    token_endpoint: at('/token'),
    jwks_uri: at('/jwks'),
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
    authorization_response_iss_parameter_supported: true,
    ...metadata,
  };
}

function claimsOf({ nonce, subject }: Grant, { issuer, client, overrides }: HostileProvider): object {
  const nowS = Math.floor(Date.now() / 1000);
  const times = { iat: nowS, exp: nowS + 300, auth_time: nowS };
  return { iss: issuer.href, aud: client.clientId, sub: subject, nonce, ...times, ...overrides.claims };
}

function isValidExchange({ headers }: IncomingMessage, form: URLSearchParams, grant: Grant): boolean {
  const encode = (text: string) => new URLSearchParams({ text }).toString().slice('text='.length);
  const wanted = `${encode(CLIENT.clientId)}:${encode(CLIENT.clientSecret)}`;
  const sent = Buffer.from((headers.authorization ?? '').replace(/^Basic /, ''), 'base64').toString();
  const challenge = createHash('sha256')
    .update(form.get('code_verifier') ?? '')
    .digest('base64url');
  return sent === wanted && challenge === grant.challenge && form.get('redirect_uri') === grant.redirectUri;
}

function toToken({ claims, header, key }: { claims: object; header: object; key: KeyObject | null }): string {
  const toPart = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const signed = `${toPart({ alg: key === null ? 'none' : 'ES256', kid: 'own', ...header })}.${toPart(claims)}`;
  if (key === null) return `${signed}.`;
  return `${signed}.${sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
}

function toJwk(key: KeyObject): object {
  return { ...key.export({ format: 'jwk' }), kid: 'own', alg: 'ES256', use: 'sig' };
}
