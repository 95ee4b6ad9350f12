import { afterAll, beforeAll, expect, it } from 'vitest';
import { openPortal, type TestPortal } from '../../services/portal/src/test/open-portal.ts';
import { addPerson, PASSWORD } from '../../services/portal/src/test/people.ts';

const EXTERNAL_URLS = [
  ...String.raw`//evil.test ///evil.test /\evil.test \\evil.test \/evil.test /\/evil.test //\evil.test`.split(' '),
  ...'https:evil.test https:/evil.test https://evil.test HTTPS://evil.test http:evil.test //evil.test@x'.split(' '),
  ...'%2f%2fevil.test /%2fevil.test /%5cevil.test %5c%5cevil.test /%09/evil.test /%0d%0aevil.test'.split(' '),
  ...['/a\nb', '/\n/evil.test', '/\t/evil.test', '/\r\n/evil.test'],
  ...['\t//evil.test', ' //evil.test', '\u00a0//evil.test'],
  ...['/x\r\nset-cookie: pwned=1', '/x\r\n\r\n<script>pwned()</script>', '/\u0000/evil.test', '\u0000//evil.test'],
  ...['javascript:pwned()', 'JaVaScRiPt:pwned()', 'java\nscript:pwned()', 'data:text/html,x', 'vbscript:x', 'blob:x'],
  ...String.raw`.evil.test @evil.test :80 ?next=//evil.test #//evil.test /..//evil.test /./\evil.test`.split(' '),
  ...'/.//evil.test /x/..//evil.test /%2e%2e//evil.test \uff0f\uff0fevil.test /\u2215evil.test /\u3002evil'.split(' '),
  ...['', ' ', 'evil.test', 'null', 'undefined', '/'.repeat(5000), `/${'x'.repeat(5000)}`],
];

let portal: TestPortal;
beforeAll(async () => {
  portal = await openPortal();
  await addPerson(portal, 'ada', { isAdministrator: true });
});
afterAll(() => portal?.close());

function toOrigin(location: string): string {
  return new URL(location, `${portal.origin}/sign-in`).origin;
}

it('the sign-in page never redirects a signed-in user to another site', async () => {
  const browser = await portal.signIn();
  for (const next of EXTERNAL_URLS)
    for (const sent of /[^\x21-\x7e]/.test(next) ? [encodeURIComponent(next)] : [encodeURIComponent(next), next]) {
      const location = (await browser.get(`/sign-in?next=${sent}`)).headers.get('location') ?? '';
      expect([sent, toOrigin(location)]).toEqual([sent, portal.origin]);
      expect(location, sent).toMatch(/^\/(?![/\\])[\x21-\x7e]*$/);
    }
});

it('a sign-in with a password never redirects to another site', async () => {
  for (const next of ['//evil.test', '/\\evil.test', '/\n/evil.test', 'javascript:pwned()', '/x\r\nset-cookie: a=b']) {
    const values = { login: 'ada', password: PASSWORD, next };
    const response = await portal.browser().submit(`/sign-in?next=${encodeURIComponent(next)}`, 'password', values);
    expect(response.status).toBe(303);
    expect(toOrigin(response.headers.get('location') ?? '')).toBe(portal.origin);
  }
});

it('a request path with two leading slashes never redirects to another site', async () => {
  const paths = '//evil.test/ //evil.test/%2f.. /%5cevil.test /projects/%0d%0ax /settings?x=//evil.test';
  for (const path of paths.split(' ')) {
    const { status, headers } = await portal.browser().get(path);
    const location = headers.get('location');
    expect(status === 404 || toOrigin(location ?? '') === portal.origin, `${path} ${status} ${location}`).toBe(true);
  }
});
