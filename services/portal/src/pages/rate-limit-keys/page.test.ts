import { expect, it } from 'vitest';
import { usePortal } from '../../test/open-portal.ts';

const portal = usePortal();

const PATH = '/instance/rate-limit-keys';
const KEY = /rl_svcapik-[0-9A-Za-z]{36}/;
const PLAN = { partner: 'Acme', calls: '5000', window: '300', expires: '2099-01-31' };

it('an administrator can create, refresh and revoke a rate limit key, and each new key is shown once', async () => {
  const browser = await portal.signIn();
  const created = await browser.submit(PATH, 'create', PLAN);
  const [first] = KEY.exec(created.text) ?? [];
  expect(first).toBeDefined();
  const list = (await browser.get(PATH)).text;
  expect(list).not.toMatch(KEY);
  for (const shown of ['5,000\u00a0calls', '2099-01-31']) expect(list).toContain(shown);
  const [second] = KEY.exec((await browser.submit(PATH, 'refresh')).text) ?? [];
  expect(second).not.toBe(first);
  expect((await browser.submit(PATH, 'revoke')).headers.get('location')).toBe(`${PATH}?done=revoked`);
  expect(await portal.parts.rateLimitKeys.all()).toMatchObject([{ partner: 'Acme', calls: 5000, revision: 3 }]);
});

it.each([
  [{ partner: '' }, 'Enter the partner'],
  [{ calls: '0' }, 'the number of calls per window'],
  [{ window: '86401' }, 'the window length in seconds'],
  [{ expires: 'tomorrow' }, 'Enter an expiry date'],
  [{ expires: '2027-02-31' }, 'Enter an expiry date'],
])('the rate limit key form rejects %j and explains which value is expected', async (invalid, expected) => {
  const { status, text } = await (await portal.signIn()).submit(PATH, 'create', { ...PLAN, ...invalid });
  expect([status, text.includes(expected)]).toEqual([400, true]);
});
