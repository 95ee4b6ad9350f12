import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createToken } from '../accounts/one-time-tokens.ts';
import { ProviderUnavailable } from '../accounts/open-id.ts';
import { createOpenIdProvider, type OpenIdProviderOptions } from './index.ts';
import { type HostileProvider, type Overrides, openHostileProvider } from './test/hostile-provider.ts';

let other: HostileProvider;
let hostile: HostileProvider;
beforeAll(async () => {
  [hostile, other] = [await openHostileProvider(), await openHostileProvider()];
});
afterAll(async () => {
  await hostile.close();
  await other.close();
});
afterEach(() => {
  for (const each of [hostile, other]) each.overrides = {};
});

const redirectUri = 'http://localhost:8084/sign-in/openid';

function setUp(changes: Partial<OpenIdProviderOptions> = {}) {
  const faults: string[] = [];
  hostile.requests.length = 0;
  const provider = createOpenIdProvider({
    issuer: hostile.issuer,
    ...hostile.client,
    label: 'Work',
    additionalOrigins: [],
    timeoutMs: 1_000,
    onFault: (code) => void faults.push(code),
    ...changes,
  });
  const request = (isFresh = false) => ({
    state: createToken(),
    nonce: createToken(),
    verifier: createToken(),
    redirectUri,
    isFresh,
  });
  /** Completes a sign-in at the provider. */
  const signIn = async (sent = request()) => provider.prove(hostile.visit(await provider.authorization(sent)), sent);
  return { provider, faults, request, signIn };
}

const nowS = () => Math.floor(Date.now() / 1000);

describe('the OpenID provider', () => {
  it('confirms a person after verifying code, state, nonce, PKCE, issuer and signature', async () => {
    const { signIn, provider, request } = setUp();
    const proof = await signIn();
    expect(proof?.openId).toEqual({ issuer: hostile.issuer.href, subject: 'person' });
    expect(Math.abs(proof!.authenticatedAt! - Date.now())).toBeLessThan(10_000);
    const { searchParams } = await provider.authorization(request());
    expect(Object.fromEntries(searchParams)).toMatchObject({
      scope: 'openid',
      response_type: 'code',
      code_challenge_method: 'S256',
      redirect_uri: redirectUri,
    });
    expect(searchParams.has('prompt')).toBe(false);
  });

  it('receives a metadata request only on the first sign-in', async () => {
    const { signIn, provider } = setUp();
    expect(hostile.requests).toEqual([]);
    await Promise.all([signIn(), signIn()]);
    await signIn();
    expect(hostile.requests.filter((path) => path.includes('well-known'))).toHaveLength(1);
    expect(new Set(hostile.requests)).toEqual(new Set(['/.well-known/openid-configuration', '/token', '/jwks']));
    expect(provider.origins).toEqual([hostile.issuer.origin]);
  });

  const claims = (overrides: Record<string, unknown>): Overrides => ({ claims: overrides });
  it.each<[string, () => Overrides]>([
    ['a token for another audience', () => claims({ aud: 'another portal' })],
    ['a token for several audiences issued to another client', () => claims({ aud: ['a portal', 'b'], azp: 'b' })],
    ['a token from another issuer', () => claims({ iss: other.issuer.href })],
    ["another request's token", () => claims({ nonce: createToken() })],
    ['a token without a nonce', () => claims({ nonce: undefined })],
    ['an expired token', () => claims({ iat: nowS() - 900, exp: nowS() - 600 })],
    ['a token without an expiry', () => claims({ exp: undefined })],
    ['a token without a subject', () => claims({ sub: undefined })],
    ['a token signed with another key', () => ({ signature: 'another key' })],
    ['a token without a signature', () => ({ signature: 'none' })],
    ['a token with the algorithm "none"', () => ({ header: { alg: 'none' } })],
    ['a token with an unknown key', () => ({ header: { kid: 'unknown' } })],
    ['a response with another state', () => ({ redirect: { state: createToken() } })],
    ['a response without a state', () => ({ redirect: { state: null } })],
    ['a response from another issuer', () => ({ redirect: { iss: other.issuer.href } })],
    ['a response without the required issuer', () => ({ redirect: { iss: null } })],
    ['a response with an invented code', () => ({ redirect: { code: 'invented' } })],
    ['a response without a code', () => ({ redirect: { code: null } })],
    ['a denied request', () => ({ redirect: { code: null, error: 'access_denied', error_description: 'no <b>' } })],
  ])('does not confirm %s', async (_, overrides) => {
    const { signIn, faults, provider, request } = setUp();
    await provider.authorization(request());
    hostile.overrides = overrides();
    expect(await signIn()).toBeNull();
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(/^[\w-]{1,60}$/);
  });

  it('confirms each response only once and only for its own request', async () => {
    const { provider, request } = setUp();
    const [sent, another] = [request(), request()];
    const first = hostile.visit(await provider.authorization(sent));
    expect(await provider.prove(first, { ...sent, verifier: another.verifier })).toBeNull();
    const next = hostile.visit(await provider.authorization(sent));
    expect(await provider.prove(next, another)).toBeNull();
    const valid = hostile.visit(await provider.authorization(sent));
    expect(await provider.prove(valid, sent)).not.toBeNull();
    expect(await provider.prove(valid, sent)).toBeNull();
  });

  it('must confirm a sign-in within the last ten minutes if the request requires a recent sign-in', async () => {
    const { signIn, provider, request } = setUp();
    const { searchParams } = await provider.authorization(request(true));
    expect([searchParams.get('prompt'), searchParams.get('max_age')]).toEqual(['login', '600']);
    expect(await signIn(request(true))).not.toBeNull();
    for (const auth_time of [nowS() - 700, undefined]) {
      hostile.overrides = { claims: { auth_time } };
      expect(await signIn(request(true))).toBeNull();
    }
    expect(await signIn()).toMatchObject({ authenticatedAt: null });
  });

  it.each<[string, () => Overrides]>([
    ['does not respond', () => ({ instead: 'silence' })],
    ['fails', () => ({ instead: 500 })],
    ['reports another issuer', () => ({ metadata: { issuer: other.issuer.href } })],
    ['redirects to another origin', () => ({ instead: new URL('/.well-known/openid-configuration', other.issuer) })],
    [
      'has an authorization endpoint with another origin',
      () => ({ metadata: { authorization_endpoint: `${other.issuer.href}authorize` } }),
    ],
    ['sends too much metadata', () => ({ metadata: { more: 'x'.repeat(600_000) } })],
  ])('is unavailable while it %s', async (_, overrides) => {
    const { provider, request, faults } = setUp();
    other.requests.length = 0;
    hostile.overrides = overrides();
    const startedAt = performance.now();
    await expect(provider.authorization(request())).rejects.toThrow(ProviderUnavailable);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect(faults).toHaveLength(1);
    expect(other.requests).toEqual([]);
    hostile.overrides = {};
    expect((await provider.authorization(request())).origin).toBe(hostile.issuer.origin);
  });

  it.each<[string, () => Overrides]>([
    ['has a token endpoint with another origin', () => ({ metadata: { token_endpoint: `${other.issuer.href}token` } })],
    ['serves its keys from another origin', () => ({ metadata: { jwks_uri: `${other.issuer.href}jwks` } })],
  ])('is unavailable if it %s, unless the origin is configured', async (_, overrides) => {
    hostile.overrides = overrides();
    const { signIn } = setUp();
    other.requests.length = 0;
    await expect(signIn()).rejects.toThrow(ProviderUnavailable);
    expect(other.requests).toEqual([]);
    const { signIn: signInAllowed } = setUp({ additionalOrigins: [other.issuer.origin] });
    await signInAllowed().catch(() => null);
    expect(other.requests).toHaveLength(1);
  });

  it('is unavailable if it fails between the redirect and the token request', async () => {
    const { provider, request } = setUp();
    const sent = request();
    const redirect = hostile.visit(await provider.authorization(sent));
    for (const instead of ['silence', 503] as const) {
      hostile.overrides = { instead };
      await expect(provider.prove(redirect, sent)).rejects.toThrow(ProviderUnavailable);
    }
    hostile.overrides = {};
    expect(await provider.prove(redirect, sent)).not.toBeNull();
  });
});
