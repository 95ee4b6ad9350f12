import type { Browser, BrowserContext } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { inPage, openBrowser, openPage, openSite, type PageGlobals } from './test/open-browser.ts';
import { type Gateway, openGateway } from './test/open-gateway.ts';

/** No timer fires during a test: messages are sent only by `flush` or when the page closes. */
const NEVER_MS = 60 * 60 * 1000;

let gateway: Gateway;
let browser: Browser;
let site: { url: string; close(): Promise<void> };
let context: BrowserContext;

beforeAll(async () => {
  [gateway, browser] = await Promise.all([openGateway(), openBrowser()]);
  const { url: baseUrl, publishableKey } = gateway;
  site = await openSite({ baseUrl, publishableKey, consent: 'full', surface: 'web', flushIntervalMs: NEVER_MS });
});
afterAll(async () => {
  await Promise.all([site?.close(), browser?.close(), gateway?.close()]);
});
beforeEach(async () => {
  context = await browser.newContext({ locale: 'de-DE', timezoneId: 'Europe/Berlin' });
});
afterEach(() => context.close());

const trackMany = ({ client }: PageGlobals, { count, bytes }: { count: number; bytes: number }) =>
  Array.from({ length: count }, (_, level) => client.track('level_done', { level, padding: 'x'.repeat(bytes) }) ?? '');

it('a page on another origin sends its events with context and receives no errors', async () => {
  const page = await openPage(context, `${site.url}/play?level=1`);
  const ids = await inPage(
    page,
    ({ client }) => [client.page(), client.identify('u-1', { identityType: 'steam' }), client.track('level_done')],
    null,
  );
  expect(await inPage(page, ({ client }) => client.flush(), null)).toBe(0);
  expect(await inPage(page, ({ reports }) => reports, null)).toEqual([]);
  const records = await gateway.awaitIds(ids.map(String));
  expect(records.map(({ type, userId }) => [type, userId])).toEqual([
    ['page', ''],
    ['identify', 'u-1'],
    ['track', 'u-1'],
  ]);
  const anonymousId = await inPage(page, ({ client }) => client.anonymousId, null);
  for (const record of records)
    expect(record).toMatchObject({
      anonymousId,
      surface: 'web',
      consentLevel: 'full',
      library: 'playline-audience-client',
      pageUrl: `${site.url}/play?level=1`,
      pagePath: '/play',
      pageTitle: 'Level select',
      locale: 'de-DE',
      timezone: 'Europe/Berlin',
      browserLanguage: 'de-DE',
      screenDensity: 1,
      userAgent: expect.stringContaining('Chrome'),
      screen: expect.stringMatching(/^\d+x\d+$/),
    });
});

it('a page on another origin sends compressed requests that the gateway accepts', async () => {
  const page = await openPage(context, site.url);
  const sent = page.waitForRequest((request) => request.method() === 'POST');
  const ids = await inPage(page, trackMany, { count: 50, bytes: 100 });
  await inPage(page, ({ client }) => client.flush(), null);
  expect((await sent).headers()['content-encoding']).toBe('gzip');
  await gateway.awaitIds(ids);
});

it('a page on another origin has the same anonymous id as earlier pages', async () => {
  const [one, other] = [await openPage(context, site.url), await openPage(context, `${site.url}/other`)];
  const idOf = (page: typeof one) => inPage(page, ({ client }) => client.anonymousId, null);
  expect(await idOf(one)).toBe(await idOf(other));
});

it.each([
  ['closed', (page: { close(): Promise<void> }) => page.close()],
  ['navigated away from', (page: { goto(url: string): Promise<unknown> }) => page.goto('about:blank')],
])('a page sends queued messages when it is %s, even if it has sent nothing before', async (_how, leave) => {
  const page = await openPage(context, site.url);
  const ids = await inPage(page, trackMany, { count: 3, bytes: 10 });
  await leave(page);
  await gateway.awaitIds(ids);
});

it('a closing page sends 60 KiB, and the next page sends the remaining messages under the same ids', async () => {
  const page = await openPage(context, site.url);
  const ids = await inPage(page, trackMany, { count: 150, bytes: 1000 });
  await page.close();
  await gateway.awaitIds(ids.slice(0, 30));
  const next = await openPage(context, site.url);
  expect(await inPage(next, ({ client }) => client.flush(), null)).toBe(0);
  await gateway.awaitIds(ids);
});

it('the next page sends messages that a closed page could not send while offline', async () => {
  const page = await openPage(context, site.url);
  await context.setOffline(true);
  const ids = await inPage(page, trackMany, { count: 5, bytes: 10 });
  await page.close();
  await context.setOffline(false);
  const next = await openPage(context, site.url);
  expect(await inPage(next, ({ client }) => client.flush(), null)).toBe(0);
  await gateway.awaitIds(ids);
});

it('two tabs that share a store lose no messages when one of them is closed', async () => {
  const [one, other] = [await openPage(context, site.url), await openPage(context, site.url)];
  const fromOne = await inPage(one, trackMany, { count: 20, bytes: 10 });
  const fromOther = await inPage(other, trackMany, { count: 20, bytes: 10 });
  await Promise.all([one, other].map((page) => inPage(page, ({ client }) => client.flush(), null)));
  const later = await inPage(other, trackMany, { count: 20, bytes: 10 });
  await other.close();
  const third = await openPage(context, site.url);
  await inPage(third, ({ client }) => client.flush(), null);
  await gateway.awaitIds([...fromOne, ...fromOther, ...later]);
});
