import { createMemorySessions } from '@playline/access-keys/test';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { addPerson, PASSWORD } from '../../../services/portal/src/test/people.ts';
import type { TestBrowser } from '../../../services/portal/src/test/test-browser.ts';
import {
  acceptForm,
  CALLBACK,
  openLinkedBrowser,
  openPortalWithProvider,
  type PortalWithProvider,
  SIGN_IN,
} from './portal-with-provider.ts';

let portal: PortalWithProvider;
beforeAll(async () => {
  portal = await openPortalWithProvider();
});
afterAll(() => portal?.close());
afterEach(() => {
  portal.provider.overrides = {};
});

const linkAccount = (login: string) => openLinkedBrowser(portal, login);

it('the portal requests a fresh sign-in from the provider and checks the time of the sign-in', async () => {
  await linkAccount('stale');
  const browser = portal.browser();
  portal.provider.overrides = { claims: { auth_time: Math.floor(Date.now() / 1000) - 3_600 } };
  expect((await portal.signInAs(browser, 'sub of stale')).status).toBe(303);
  const unlink = async () => (await browser.submit('/settings', 'unlink-openid')).headers.get('location');
  expect(await unlink()).toBe('/sign-in?again=1&next=%2Fsettings');
  const renewal = { ...SIGN_IN, path: '/sign-in?again=1&next=%2Fsettings' };
  const location = await portal.submitToProvider(browser, renewal);
  expect([location.searchParams.get('prompt'), location.searchParams.get('max_age')]).toEqual(['login', '600']);
  expect((await portal.signInAs(browser, 'sub of stale', renewal)).status).toBe(401);
  portal.provider.overrides = {};
  expect((await portal.signInAs(browser, 'sub of stale', renewal)).status).toBe(303);
  expect(await unlink()).toBe('/settings?done=unlinked');
});

it('accepting an invitation counts as a fresh sign-in even if the provider does not send `auth_time`', async () => {
  portal.provider.overrides = { claims: { auth_time: undefined } };
  const browser = portal.browser();
  expect(
    (await portal.signInAs(browser, 'by-link', acceptForm(await portal.createInvitation('analyst'), 'by-link'))).status,
  ).toBe(303);
  const typed = { password: PASSWORD, repeated: PASSWORD };
  const submit = async (tab: TestBrowser) => (await tab.submit('/settings', 'password', typed)).headers.get('location');
  expect(await submit(browser)).toBe('/settings?done=password');
  const joined = portal.browser();
  await portal.signInAs(joined, 'by-link', acceptForm(await portal.createInvitation('owner'), 'unused'));
  expect(await submit(joined)).toContain('/sign-in?again=1');
});

it('a sign-in does not count as fresh if the provider does not send `auth_time`', async () => {
  await linkAccount('silent');
  portal.provider.overrides = { claims: { auth_time: undefined } };
  const browser = portal.browser();
  expect((await portal.signInAs(browser, 'sub of silent')).status).toBe(303);
  expect((await browser.submit('/settings', 'unlink-openid')).headers.get('location')).toContain('/sign-in?again=1');
  const renewed = await portal.signInAs(browser, 'sub of silent', { ...SIGN_IN, path: '/sign-in?again=1' });
  expect([renewed.status, renewed.text.includes('passkey')]).toEqual([401, true]);
});

it('the portal reports that the provider is unavailable and still accepts passwords', async () => {
  const brokenPortal = await openPortalWithProvider();
  await addPerson(brokenPortal, 'ada', {});
  for (const instead of ['silence', 500] as const) {
    brokenPortal.provider.overrides = { instead };
    const { status, text } = await brokenPortal.browser().submit('/sign-in', 'openid');
    expect([status, text.includes('Work &amp; Co is unavailable')]).toEqual([503, true]);
  }
  const browser = brokenPortal.browser();
  expect((await browser.submit('/sign-in', 'password', { login: 'ada', password: PASSWORD })).status).toBe(303);
  brokenPortal.provider.overrides = {};
  const callback = brokenPortal.provider.visit(await brokenPortal.submitToProvider(brokenPortal.browser(), SIGN_IN));
  expect(callback.pathname).toBe(CALLBACK);
  await brokenPortal.close();
});

it('the portal responds to excess unexpected callbacks with 429 and does not audit them', async () => {
  const entries: unknown[] = [];
  const floodedPortal = await openPortalWithProvider({ audit: { append: async (entry) => void entries.push(entry) } });
  const browser = floodedPortal.browser();
  const statuses = [];
  for (let n = 0; n < 70; n++) statuses.push((await browser.get(`${CALLBACK}?state=${n}&code=c`)).status);
  await floodedPortal.close();
  expect(statuses.filter((status) => status === 401)).toHaveLength(60);
  expect(statuses.filter((status) => status === 429)).toHaveLength(10);
  expect(entries).toHaveLength(60);
});

it('only pages with a form for the provider allow forms to be submitted to the provider', async () => {
  const readPolicy = async (path: string) => {
    const browser = await portal.signIn();
    const headers = (await browser.get(path)).headers.get('content-security-policy') ?? '';
    return /form-action ([^;]*)/.exec(headers)?.[1];
  };
  const { origin } = portal.provider.issuer;
  for (const path of ['/sign-in?again=1', '/settings', await portal.createInvitation('analyst')])
    expect(await readPolicy(path), path).toBe(`'self' ${origin}`);
  for (const path of ['/', '/instance/accounts', '/sign-out', CALLBACK])
    expect(await readPolicy(path), path).toBe("'self'");
});

it('the sign-in page shows a provider button only if a provider is configured', async () => {
  expect((await portal.browser().get('/sign-in')).text).toContain('Sign in with Work &amp; Co');
  const withoutProvider = await openPortalWithProvider({ openIdProvider: null });
  const browser = withoutProvider.browser();
  expect(browser.formOf((await browser.get('/sign-in')).text, 'openid')).toBeNull();
  expect((await browser.get(CALLBACK)).status).toBe(404);
  await withoutProvider.close();
});

it('the portal does not store the link code or the state during the redirect to the provider', async () => {
  const stored: string[] = [];
  const { sessions, oneTimeTokens } = createMemorySessions();
  const issue: typeof oneTimeTokens.issue = async (request) => {
    stored.push(request.value);
    return oneTimeTokens.issue(request);
  };
  const watchedPortal = await openPortalWithProvider({ sessions, oneTimeTokens: { ...oneTimeTokens, issue } });
  const path = await watchedPortal.createInvitation('analyst');
  const browser = watchedPortal.browser();
  const location = await watchedPortal.submitToProvider(browser, acceptForm(path, 'ada'));
  expect(stored).toHaveLength(1);
  expect(stored[0]).not.toContain(path.split('=')[1]!);
  expect(stored[0]).not.toContain(location.searchParams.get('state')!);
  expect(location.href).not.toContain(path.split('=')[1]!);
  const [text = ''] = /playline-way-\w+=[^;]+/.exec(browser.cookie) ?? [];
  expect(stored[0]).not.toContain(text.split('=')[1]!.split('.')[0]!);
  await watchedPortal.close();
});
