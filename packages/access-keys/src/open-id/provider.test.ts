import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createToken } from '../accounts/one-time-texts.ts';
import { ProviderUnavailable } from '../accounts/open-id.ts';
import { createOpenIdProvider, type OpenIdProviderOptions } from './index.ts';
import { type HostileProvider, type Lies, openHostileProvider } from './test/hostile-provider.ts';

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
  for (const each of [hostile, other]) each.lies = {};
});

const redirectUri = 'http://localhost:8084/sign-in/openid';

function setUp(own: Partial<OpenIdProviderOptions> = {}) {
  const faults: string[] = [];
  hostile.requests.length = 0;
  const provider = createOpenIdProvider({
    issuer: hostile.issuer,
    ...hostile.client,
    label: 'Work',
    alsoAt: [],
    timeoutMs: 1_000,
    onFault: (code) => void faults.push(code),
    ...own,
  });
  const question = (isFresh = false) => ({
    state: createToken(),
    nonce: createToken(),
    verifier: createToken(),
    redirectUri,
    isFresh,
  });
  /** There and back. */
  const signIn = async (asked = question()) =>
    provider.prove(hostile.visit(await provider.authorization(asked)), asked);
  return { provider, faults, question, signIn };
}

const nowS = () => Math.floor(Date.now() / 1000);

describe('a provider of OpenID Connect', () => {
  it('vouches for whom its token is of, once the code, the state, the nonce, PKCE, the issuer and the signature are right', async () => {
    const { signIn, provider, question } = setUp();
    const proof = await signIn();
    expect(proof?.openId).toEqual({ issuer: hostile.issuer.href, subject: 'somebody' });
    expect(Math.abs(proof!.authenticatedAt! - Date.now())).toBeLessThan(10_000);
    const { searchParams } = await provider.authorization(question());
    expect(Object.fromEntries(searchParams)).toMatchObject({
      scope: 'openid',
      response_type: 'code',
      code_challenge_method: 'S256',
      redirect_uri: redirectUri,
    });
    expect(searchParams.has('prompt')).toBe(false);
  });

  it('is asked what it is with the first sign-in, and not again', async () => {
    const { signIn, provider } = setUp();
    expect(hostile.requests).toEqual([]);
    await Promise.all([signIn(), signIn()]);
    await signIn();
    expect(hostile.requests.filter((path) => path.includes('well-known'))).toHaveLength(1);
    expect(new Set(hostile.requests)).toEqual(new Set(['/.well-known/openid-configuration', '/token', '/jwks']));
    expect(provider.origins).toEqual([hostile.issuer.origin]);
  });

  const claims = (lies: Record<string, unknown>): Lies => ({ claims: lies });
  it.each<[string, () => Lies]>([
    ['a token for somebody else', () => claims({ aud: 'another portal' })],
    ['a token for several, and made for another one', () => claims({ aud: ['a portal', 'b'], azp: 'b' })],
    ['a token of another issuer', () => claims({ iss: other.issuer.href })],
    ['a token of another question', () => claims({ nonce: createToken() })],
    ['a token without a nonce', () => claims({ nonce: undefined })],
    ['a token that is over', () => claims({ iat: nowS() - 900, exp: nowS() - 600 })],
    ['a token without an end', () => claims({ exp: undefined })],
    ['a token of nobody', () => claims({ sub: undefined })],
    ['a token that another key has signed', () => ({ signature: 'of another key' })],
    ['a token that nobody has signed', () => ({ signature: 'none' })],
    ['a token that says that nobody has signed it', () => ({ header: { alg: 'none' } })],
    ['a token with a key of its own choice', () => ({ header: { kid: 'unknown' } })],
    ['an answer with another state', () => ({ answer: { state: createToken() } })],
    ['an answer without a state', () => ({ answer: { state: null } })],
    ['an answer of another issuer', () => ({ answer: { iss: other.issuer.href } })],
    ['an answer that does not say whose it is, although it should', () => ({ answer: { iss: null } })],
    ['an answer with a code that nobody gave out', () => ({ answer: { code: 'invented' } })],
    ['an answer without a code', () => ({ answer: { code: null } })],
    ['a refusal', () => ({ answer: { code: null, error: 'access_denied', error_description: 'no <b>' } })],
  ])('does not vouch by %s', async (_, lies) => {
    const { signIn, faults, provider, question } = setUp();
    await provider.authorization(question());
    hostile.lies = lies();
    expect(await signIn()).toBeNull();
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(/^[\w-]{1,60}$/);
  });

  it('does not vouch twice by one answer, nor for another question of the same browser', async () => {
    const { provider, question } = setUp();
    const [asked, also] = [question(), question()];
    const back = hostile.visit(await provider.authorization(asked));
    expect(await provider.prove(back, { ...asked, verifier: also.verifier })).toBeNull();
    const next = hostile.visit(await provider.authorization(asked));
    expect(await provider.prove(next, also)).toBeNull();
    const good = hostile.visit(await provider.authorization(asked));
    expect(await provider.prove(good, asked)).not.toBeNull();
    expect(await provider.prove(good, asked)).toBeNull();
  });

  it('is to say when somebody signed in where it must be fresh, at most ten minutes ago, whatever it was asked', async () => {
    const { signIn, provider, question } = setUp();
    const { searchParams } = await provider.authorization(question(true));
    expect([searchParams.get('prompt'), searchParams.get('max_age')]).toEqual(['login', '600']);
    expect(await signIn(question(true))).not.toBeNull();
    for (const auth_time of [nowS() - 700, undefined]) {
      hostile.lies = { claims: { auth_time } };
      expect(await signIn(question(true))).toBeNull();
    }
    expect(await signIn()).toMatchObject({ authenticatedAt: null });
  });

  it.each<[string, () => Lies]>([
    ['says nothing', () => ({ instead: 'silence' })],
    ['fails', () => ({ instead: 500 })],
    ['says that it is another one', () => ({ metadata: { issuer: other.issuer.href } })],
    ['sends on elsewhere', () => ({ instead: new URL('/.well-known/openid-configuration', other.issuer) })],
    ['sends people elsewhere', () => ({ metadata: { authorization_endpoint: `${other.issuer.href}authorize` } })],
    ['says more than anybody reads', () => ({ metadata: { more: 'x'.repeat(600_000) } })],
  ])('is away when it %s, and is asked again by whoever comes next', async (_, lies) => {
    const { provider, question, faults } = setUp();
    other.requests.length = 0;
    hostile.lies = lies();
    const begunAt = performance.now();
    await expect(provider.authorization(question())).rejects.toThrow(ProviderUnavailable);
    expect(performance.now() - begunAt).toBeLessThan(10_000);
    expect(faults).toHaveLength(1);
    expect(other.requests).toEqual([]);
    hostile.lies = {};
    expect((await provider.authorization(question())).origin).toBe(hostile.issuer.origin);
  });

  it.each<[string, () => Lies]>([
    ['has tokens elsewhere', () => ({ metadata: { token_endpoint: `${other.issuer.href}token` } })],
    ['has keys elsewhere', () => ({ metadata: { jwks_uri: `${other.issuer.href}jwks` } })],
  ])('asks nobody else when it %s, unless that is known as its own', async (_, lies) => {
    hostile.lies = lies();
    const { signIn } = setUp();
    other.requests.length = 0;
    await expect(signIn()).rejects.toThrow(ProviderUnavailable);
    expect(other.requests).toEqual([]);
    const { signIn: signInAlso } = setUp({ alsoAt: [other.issuer.origin] });
    await signInAlso().catch(() => null);
    expect(other.requests).toHaveLength(1);
  });

  it('is away when it ends between the answer and the token', async () => {
    const { provider, question } = setUp();
    const asked = question();
    const back = hostile.visit(await provider.authorization(asked));
    for (const instead of ['silence', 503] as const) {
      hostile.lies = { instead };
      await expect(provider.prove(back, asked)).rejects.toThrow(ProviderUnavailable);
    }
    hostile.lies = {};
    expect(await provider.prove(back, asked)).not.toBeNull();
  });
});
