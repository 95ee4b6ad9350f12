import { afterAll, beforeAll, expect, it } from 'vitest';
import { openPortal, type TestPortal } from '../../test/open-portal.ts';

let portal: TestPortal;
beforeAll(async () => {
  portal = await openPortal();
});
afterAll(() => portal.close());

const PATH = '/instance/rate-limit-keys';
const KEY = /rl_svcapik-[0-9A-Za-z]{36}/;
const PLAN = { partner: 'Acme', calls: '5000', window: '300', expires: '2099-01-31' };

it('an administrator creates, refreshes and revokes a key, which is shown once', async () => {
  const browser = await portal.signIn();
  const created = await browser.submit(PATH, 'create', PLAN);
  const [first] = KEY.exec(created.text) ?? [];
  expect(first).toBeDefined();
  const list = (await browser.get(PATH)).text;
  expect([KEY.test(list), list.includes('5\u202f000\u00a0calls'), list.includes('2099-01-31')]).toEqual([
    false,
    true,
    true,
  ]);
  const [second] = KEY.exec((await browser.submit(PATH, 'refresh')).text) ?? [];
  expect(second).not.toBe(first);
  expect((await browser.submit(PATH, 'revoke')).headers.get('location')).toBe(`${PATH}?done=revoked`);
  expect(await portal.parts.rateLimitKeys.all()).toMatchObject([{ partner: 'Acme', calls: 5000, revision: 3 }]);
});

it.each([
  [{ partner: '' }, 'Enter the partner'],
  [{ calls: '0' }, 'the calls per window'],
  [{ window: '86401' }, 'the seconds of a window'],
  [{ expires: 'tomorrow' }, 'Enter the day of expiry'],
  [{ expires: '2027-02-31' }, 'Enter the day of expiry'],
])('the form refuses %j and names the expected value', async (wrong, expected) => {
  const { status, text } = await (await portal.signIn()).submit(PATH, 'create', { ...PLAN, ...wrong });
  expect([status, text.includes(expected)]).toEqual([400, true]);
});
