import fc from 'fast-check';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Host } from '../host.ts';
import { type AudienceStore, createMemoryStore, type Message } from '../index.ts';
import { createClient, pass, useFakeTime } from '../test/client.ts';
import { createService } from '../test/service.ts';
import { type AutocaptureOptions, openAutocapture } from './index.ts';

const MINUTE_MS = 60_000;
const browser = globalThis as unknown as Required<Pick<Host, 'history'>>;

let windowEvents: EventTarget;
let location: { href: string; pathname: string };

beforeEach(() => {
  useFakeTime();
  windowEvents = new EventTarget();
  location = { href: '', pathname: '' };
  navigate('https://game.example/play');
  vi.stubGlobal('location', location);
  vi.stubGlobal('document', { visibilityState: 'visible', title: 'Page', referrer: '' });
  vi.stubGlobal('history', {
    pushState: (_state: unknown, _title: string, url: string) => navigate(url),
    replaceState: (_state: unknown, _title: string, url: string) => navigate(url),
  });
  vi.stubGlobal('addEventListener', windowEvents.addEventListener.bind(windowEvents));
  vi.stubGlobal('removeEventListener', windowEvents.removeEventListener.bind(windowEvents));
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

function navigate(url: string): void {
  const { href, pathname } = new URL(url, location.href || undefined);
  Object.assign(location, { href, pathname });
}
const fire = (name: string, fields: object = {}) => windowEvents.dispatchEvent(Object.assign(new Event(name), fields));

type Options = AutocaptureOptions & Parameters<typeof createClient>[1];

/** Opens a page with autocapture. `sent` returns all messages, including messages that earlier pages have stored. */
function openPage({ pageViews, sessions, inactivityTimeoutMs, ...options }: Options = {}) {
  const service = createService();
  const { client } = createClient(service, { store: createMemoryStore(), ...options });
  const settings = { pageViews, sessions, inactivityTimeoutMs };
  const autocapture = openAutocapture(client, JSON.parse(JSON.stringify(settings)));
  const sent = async (): Promise<Message[]> => {
    await client.flush();
    return service.requests.flatMap(({ messages }) => messages);
  };
  const named = async () => (await sent()).map(({ type, eventName }) => eventName ?? type);
  return { client, autocapture, sent, named };
}

const navigations = (messages: Message[]) =>
  messages
    .filter(({ type }) => type === 'page')
    .map(({ properties, context }) => `${properties?.navigation} ${context?.pageUrl?.replace(/.*example/, '')}`);

it('autocapture sends a page view for the initial URL and for each history navigation', async () => {
  const { sent } = openPage();
  browser.history.pushState(null, '', '/shop');
  browser.history.pushState(null, '', '/shop#top');
  browser.history.replaceState(null, '', '/shop?sort=new');
  browser.history.replaceState(null, '', '/play');
  navigate('/shop');
  fire('popstate');
  fire('hashchange');
  fire('pageshow', { persisted: false });
  fire('pageshow', { persisted: true });
  expect(navigations(await sent())).toEqual([
    ...['load /play', 'push /shop', 'push /shop#top', 'replace /play', 'traverse /shop', 'traverse /shop'],
  ]);
});

it('autocapture sends no page views without consent, and starts with the current page after consent', async () => {
  const { client, sent } = openPage({ consent: undefined });
  browser.history.pushState(null, '', '/shop');
  client.setConsent('anonymous');
  client.setConsent('full');
  expect(navigations(await sent())).toEqual(['load /shop']);
});

it('autocapture stops sending page views and restores the history methods on close', async () => {
  const { pushState } = browser.history;
  const { autocapture, sent } = openPage();
  expect(browser.history.pushState).not.toBe(pushState);
  autocapture.close();
  expect(browser.history.pushState).toBe(pushState);
  browser.history.pushState(null, '', '/shop');
  fire('popstate');
  expect(navigations(await sent())).toEqual(['load /play']);
});

it("autocapture preserves other scripts' history wrappers and passes exceptions through", async () => {
  const page = openPage();
  const wrapped = browser.history.pushState;
  const other = (...given: Parameters<typeof wrapped>) => wrapped.apply(browser.history, given);
  browser.history.pushState = other;
  page.autocapture.close();
  expect(browser.history.pushState).toBe(other);
  browser.history.pushState(null, '', '/shop');
  expect(location.pathname).toBe('/shop');
  expect(navigations(await page.sent())).toEqual(['load /play']);
  const throwing = vi.fn(() => {
    throw new Error('browser error');
  });
  browser.history.pushState = throwing;
  openPage();
  expect(() => browser.history.pushState(null, '', '/shop')).toThrow('browser error');
});

it('page views and sessions can be enabled separately', async () => {
  expect(await openPage({ pageViews: false }).named()).toEqual(['session_started']);
  const { sent } = openPage({ sessions: false });
  expect((await sent()).map(({ type, sessionId }) => [type, sessionId])).toEqual([['page', undefined]]);
});

it('a session starts with the first page and is set on every message until half an hour of inactivity', async () => {
  const { client, sent } = openPage();
  await pass(29 * MINUTE_MS);
  client.track('one');
  await pass(29 * MINUTE_MS);
  fire('keydown');
  await pass(30 * MINUTE_MS);
  const messages = await sent();
  expect(messages.map(({ eventName, type }) => eventName ?? type)).toEqual([
    ...['session_started', 'page', 'one', 'session_ended'],
  ]);
  expect(new Set(messages.map(({ sessionId }) => sessionId)).size).toBe(1);
  const lastActiveAt = new Date(Date.now() - 30 * MINUTE_MS).toISOString();
  expect(messages.at(-1)?.properties).toEqual({ reason: 'inactivity', durationMs: 58 * MINUTE_MS, lastActiveAt });
});

it('a new session starts when the player becomes active again', async () => {
  const { client, autocapture, sent } = openPage({ pageViews: false, inactivityTimeoutMs: MINUTE_MS });
  await pass(2 * MINUTE_MS);
  expect((await sent()).length).toBe(2);
  autocapture.touch();
  client.track('one');
  const messages = await sent();
  expect(messages.map(({ eventName }) => eventName)).toEqual([
    ...['session_started', 'session_ended', 'session_started', 'one'],
  ]);
  const ids = messages.map(({ sessionId }) => sessionId);
  expect([ids[0] === ids[1], ids[2] === ids[3], ids[1] === ids[2]]).toEqual([true, true, false]);
});

it('a session continues across pages, and the next page ends a session that has timed out', async () => {
  const store = createMemoryStore();
  const options = { store, pageViews: false };
  const first = openPage(options);
  await first.client.close();
  await pass(29 * MINUTE_MS);
  const second = openPage(options);
  second.client.track('one');
  const [tracked, ...others] = await second.sent();
  expect(others).toEqual([]);
  expect(tracked?.sessionId).toBe((await first.sent())[0]?.sessionId);
  await second.client.close();
  await pass(31 * MINUTE_MS);
  const third = await openPage(options).sent();
  expect(third.map(({ eventName }) => eventName)).toEqual(['session_ended', 'session_started']);
  expect(third[0]).toMatchObject({ sessionId: tracked?.sessionId, properties: { durationMs: 29 * MINUTE_MS } });
});

it('a session is shared by all tabs and ends once, when no tab is active', async () => {
  const options = { store: createMemoryStore(), pageViews: false };
  const [one, other] = [openPage(options), openPage(options)];
  await pass(20 * MINUTE_MS);
  other.autocapture.touch();
  await pass(20 * MINUTE_MS);
  expect([...(await one.named()), ...(await other.named())]).toEqual(['session_started']);
  await pass(20 * MINUTE_MS);
  expect([...(await one.named()), ...(await other.named())].sort()).toEqual(['session_ended', 'session_started']);
});

it('reset ends the session, and the next session starts under the new anonymous id', async () => {
  const { client, sent } = openPage({ pageViews: false });
  const before = client.anonymousId;
  client.reset();
  client.track('one');
  const messages = await sent();
  expect(messages.map(({ eventName, anonymousId }) => [eventName, anonymousId === before])).toEqual([
    ...[
      ['session_started', true],
      ['session_ended', true],
      ['session_started', false],
      ['one', false],
    ],
  ]);
  expect(messages[1]?.sessionId).not.toBe(messages[3]?.sessionId);
});

it('a session is neither created nor stored without consent, and ends silently when consent is withdrawn', async () => {
  const store = createMemoryStore();
  const { client, named } = openPage({ store, consent: undefined, pageViews: false });
  fire('keydown');
  expect(store.keys()).toEqual([]);
  client.setConsent('full');
  await named();
  client.setConsent('none');
  expect(store.keys()).toEqual([]);
  await pass(60 * MINUTE_MS);
  client.setConsent('full');
  expect(await named()).toEqual(['session_started', 'session_started']);
});

it('a session lasts for the whole page even if every store operation fails', async () => {
  const fail = () => {
    throw new Error('browser error');
  };
  const store: AudienceStore = { get: fail, set: fail, remove: fail, keys: fail };
  const { client, named } = openPage({ store, pageViews: false });
  for (let minute = 0; minute < 5; minute += 1) {
    await pass(MINUTE_MS);
    client.track('one');
  }
  await pass(30 * MINUTE_MS);
  expect(await named()).toEqual(['session_started', 'one', 'one', 'one', 'one', 'one', 'session_ended']);
});

it('a new session starts if another script has overwritten the stored session', async () => {
  for (const text of ['{', 'null', '3', '{"id":""}', '{"id":"a","startedAt":1e300,"lastActiveAt":1e300}']) {
    const store = createMemoryStore();
    store.set('audience:session', text);
    expect(await openPage({ store, pageViews: false }).named()).toEqual(['session_started']);
  }
});

it('a session ends if the clock jumps by hours, and a new session starts', async () => {
  for (const sign of [-1, 1]) {
    const { client, named } = openPage({ pageViews: false });
    vi.setSystemTime(Date.now() + sign * 180 * MINUTE_MS);
    client.track('one');
    expect(await named()).toEqual(['session_started', 'session_ended', 'session_started', 'one']);
  }
});

it('every session has exactly one start and one end, for any sequence of actions in two tabs', async () => {
  const step = fc.record({
    tab: fc.nat({ max: 1 }),
    action: fc.constantFrom('track', 'touch', 'reset', 'wait', 'wait long', 'reload'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const options = { store: createMemoryStore(), pageViews: false, inactivityTimeoutMs: MINUTE_MS };
      const all = [openPage(options), openPage(options)];
      const tabs = [...all];
      for (const { tab, action } of steps) {
        const { client, autocapture } = tabs[tab]!;
        if (action === 'track') client.track('one');
        if (action === 'touch') autocapture.touch();
        if (action === 'reset') client.reset();
        if (action === 'wait') await pass(MINUTE_MS / 3);
        if (action === 'wait long') await pass(2 * MINUTE_MS);
        if (action !== 'reload') continue;
        await client.close();
        tabs[tab] = openPage(options);
        all.push(tabs[tab]!);
      }
      await pass(3 * MINUTE_MS);
      const events = (await Promise.all(all.map(({ sent }) => sent()))).flat();
      const starts = events.filter(({ eventName }) => eventName === 'session_started');
      const ends = events.filter(({ eventName }) => eventName === 'session_ended');
      const idsOf = (messages: Message[]) => messages.map(({ sessionId }) => sessionId).sort();
      expect(new Set(idsOf(starts)).size).toBe(starts.length);
      expect(idsOf(ends)).toEqual(idsOf(starts));
      for (const { sessionId } of events) expect(idsOf(starts)).toContain(sessionId);
      for (const { client } of all) await client.close();
    }),
    { numRuns: 60 },
  );
});
