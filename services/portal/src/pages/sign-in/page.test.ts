import { expect, it } from 'vitest';
import { openPortal, usePortal } from '../../test/open-portal.ts';
import { addPerson, PASSWORD } from '../../test/people.ts';
import type { TestBrowser } from '../../test/test-browser.ts';

const portal = usePortal();

/** @param overrides form fields; `path` replaces the path of the page */
const signIn = (browser: TestBrowser, login: string, overrides: Record<string, string> = {}) => {
  const { path = '/sign-in', ...typed } = overrides;
  return browser.submit(path, 'password', { login, password: PASSWORD, ...typed });
};

it('each sign-in creates a new session and ends the previous session of the browser', async () => {
  const ada = await addPerson(portal, 'ada', {});
  const browser = await portal.signIn();
  const before = browser.cookie;
  const response = await signIn(browser, 'ADA', { path: '/sign-in?again=1' });
  expect([response.status, response.headers.get('location')]).toEqual([303, '/']);
  expect(browser.cookie).not.toBe(before);
  expect(response.headers.getSetCookie()[0]).toMatch(/; Path=\/; HttpOnly; SameSite=Lax$/);
  const stolen = portal.browser();
  stolen.resumeSession(before.split('=')[1]!);
  expect((await stolen.get('/')).status).toBe(303);
  expect((await browser.get('/settings')).text).toContain('<dd>ada</dd>');
  expect(await portal.parts.sessions.list(ada.id)).toHaveLength(1);
});

it('an unknown login, a wrong password and a disabled account get the same response', async () => {
  await addPerson(portal, 'bob', {});
  await addPerson(portal, 'gone', { state: 'disabled' });
  const messages = [];
  for (const [login, password] of [
    ['bob', 'another password'],
    ['unknown', PASSWORD],
    ['gone', PASSWORD],
  ] as const) {
    const { status, text, headers } = await signIn(portal.browser(), login, { password });
    expect([status, headers.getSetCookie()]).toEqual([401, []]);
    expect(text).not.toContain(password);
    messages.push(/<p class="message failed" role="alert">([^<]*)</.exec(text)?.[1]);
  }
  expect(new Set(messages).size).toBe(1);
});

it('a browser that has signed in before is not blocked by failed attempts from other browsers', async () => {
  const otherPortal = await openPortal();
  await addPerson(otherPortal, 'known', {});
  const browser = otherPortal.browser();
  await signIn(browser, 'known');
  await browser.submit('/', 'sign-out');
  for (let n = 0; n < 10; n++) await signIn(otherPortal.browser(), 'known', { password: 'another password' });
  expect((await signIn(otherPortal.browser(), 'known')).status).toBe(429);
  expect((await signIn(browser, 'known')).status).toBe(303);
  await otherPortal.close();
});

it('signing out ends the session and deletes the cookie', async () => {
  const browser = await portal.signIn();
  const before = browser.cookie;
  const response = await browser.submit('/', 'sign-out');
  expect([response.status, response.headers.get('location')]).toEqual([303, '/sign-in?done=signed-out']);
  expect(browser.cookie).toBe('');
  browser.resumeSession(before.split('=')[1]!);
  expect((await browser.get('/')).status).toBe(303);
});
