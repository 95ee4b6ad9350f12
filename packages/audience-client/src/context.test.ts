import { afterEach, expect, it, vi } from 'vitest';
import { createClient } from './test/client.ts';
import { createService } from './test/service.ts';

afterEach(() => vi.unstubAllGlobals());

async function sentContext(options: Parameters<typeof createClient>[1] = {}) {
  const service = createService();
  const { client } = createClient(service, options);
  client.page();
  await client.flush();
  return service.requests[0]?.messages[0]?.context;
}

it('outside a page, the context contains only the fields that the runtime provides', async () => {
  const context = await sentContext();
  expect(Object.keys(context ?? {}).sort()).toEqual(['library', 'libraryVersion', 'locale', 'timezone', 'userAgent']);
  expect(context).toMatchObject({ library: 'playline-audience-client', libraryVersion: '0.1.0' });
});

it("the context contains the caller's library name and version", async () => {
  const library = { library: 'my-game', libraryVersion: '7' };
  expect(await sentContext(library)).toMatchObject(library);
});

it("the caller's context fields override the client's fields", async () => {
  const context = await sentContext({ context: () => ({ locale: 'x-own', pageUrl: 'https://game.example/' }) });
  expect(context).toMatchObject({ locale: 'x-own', pageUrl: 'https://game.example/' });
});

it('the context is truncated to the contract limits without splitting surrogate pairs', async () => {
  vi.stubGlobal('document', { title: `${'x'.repeat(255)}😀`, referrer: 'r'.repeat(3000) });
  vi.stubGlobal('location', { href: 'h'.repeat(3000), pathname: 'p'.repeat(3000) });
  vi.stubGlobal('navigator', { userAgent: 'u'.repeat(600), language: 'l'.repeat(300) });
  const context = (await sentContext()) ?? {};
  const lengths = Object.entries(context).map(([name, value]) => [name, String(value).length]);
  expect(Object.fromEntries(lengths)).toMatchObject({
    pageUrl: 2048,
    pagePath: 2048,
    pageReferrer: 2048,
    userAgent: 512,
    browserLanguage: 256,
    pageTitle: 255,
  });
});

it("an exception in the caller's context function drops only the current message", async () => {
  const service = createService();
  const { client, reports } = createClient(service, {
    context: () => {
      throw new Error('game error');
    },
  });
  expect(client.track('one')).toBeNull();
  expect(reports.dropped).toMatchObject([{ reason: 'unserialisable' }]);
});
