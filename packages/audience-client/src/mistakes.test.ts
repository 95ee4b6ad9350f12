import { ID_CODE_POINTS_MAX, parseMessage } from '@playline/contracts';
import { codePoint } from '@playline/testkit/code-point';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { openAudienceClient } from './index.ts';
import { createClient } from './test/client.ts';
import { createService } from './test/service.ts';

const printed = { error: [] as string[], warn: [] as string[], log: [] as string[] };

beforeEach(() => {
  for (const kind of ['error', 'warn', 'log'] as const) {
    printed[kind] = [];
    vi.spyOn(console, kind).mockImplementation((...values) => void printed[kind].push(values.map(toText).join(' ')));
  }
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

const toText = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
const LONG = '😀'.repeat(257);

it.each([
  ['eventName is required', 'track', ['']],
  ['eventName is required', 'track', ['   ']],
  ['eventName is required', 'track', [undefined]],
  ['eventName is not a string', 'track', [3]],
  ['eventName is longer than 256 characters', 'track', [LONG]],
  ['properties is not an object', 'track', ['a', 'level 3']],
  ['properties is not an object', 'page', [['a']]],
  ['eventName is longer than 256 characters', 'screen', [LONG]],
  ['userId is required', 'identify', ['']],
  ['userId is longer than 256 characters', 'identify', [LONG]],
  ['userId contains a lone surrogate', 'identify', ['u\ud800']],
  ['identityType is not one of passport, steam, ', 'identify', ['u', { identityType: 'Steam' }]],
  ['traits is not an object', 'identify', ['u', { traits: 'rich' }]],
  ['toId is the same as fromId', 'alias', [{ fromId: 'a', toId: ' a ' }]],
  ['toId is required', 'alias', [{ fromId: 'a' }]],
] as const)(
  'a call that the service would reject is logged, reported and dropped: %s (%s)',
  async (error, method, args) => {
    const service = createService();
    const { client, reports } = createClient(service);
    expect((client[method] as (...all: unknown[]) => unknown)(...args)).toBeNull();
    expect(printed.error).toEqual([expect.stringContaining(error)]);
    expect(reports.dropped).toEqual([
      { messageIds: [expect.any(String)], reason: 'invalid', message: expect.stringContaining(error) },
    ]);
    client.track('valid');
    await client.flush();
    expect(service.requests[0]?.messages.map(({ eventName, userId }) => [eventName, userId])).toEqual([
      ['valid', undefined],
    ]);
  },
);

it('a call that the service would reject is logged even without consent', () => {
  createClient(createService(), { consent: undefined }).client.track('');
  expect(printed.error).toEqual([expect.stringContaining('eventName is required')]);
});

it('identify rejects exactly the ids that the contract rejects', async () => {
  const text = fc.oneof(
    fc.string({ unit: codePoint, maxLength: 4 }),
    fc.string({ unit: fc.constantFrom('a', '😀', '\ud83d', ' ', '\u00a0'), minLength: 250, maxLength: 260 }),
  );
  await fc.assert(
    fc.asyncProperty(text, async (id) => {
      const service = createService();
      const { client } = createClient(service, { store: undefined });
      const messageId = client.identify(id);
      const message = { type: 'identify', messageId: crypto.randomUUID(), eventTimestamp: new Date().toISOString() };
      const window = { fromMs: 0, toMs: Date.now() + 1000 };
      expect(messageId !== null).toBe(parseMessage({ ...message, userId: id }, window).ok);
      await client.close();
    }),
  );
  expect(ID_CODE_POINTS_MAX).toBe(256);
});

it.each([
  ['baseUrl is not a string', { baseUrl: undefined }],
  ['publishableKey is required', { publishableKey: '' }],
  ['publishableKey is a secret key', { publishableKey: 'sk_svcapik-1' }],
  ['deviceId is longer than 256 characters', { deviceId: LONG }],
  ['sessionId is required', { sessionId: '' }],
])('openAudienceClient rejects invalid options: %s', (error, wrong) => {
  const options = { baseUrl: 'https://events.example', publishableKey: 'pk_svcapik-1', ...wrong };
  expect(() => openAudienceClient(options as never)).toThrow(new TypeError(`openAudienceClient: ${error}`));
});

it('register rejects properties that are not serialisable, so that no later message is lost', async () => {
  const service = createService();
  const { client } = createClient(service);
  client.register({ gold: 3n });
  client.register('gold' as never);
  client.track('one');
  expect(await client.flush()).toBe(0);
  expect(service.stored.size).toBe(1);
  expect(printed.error).toEqual([
    expect.stringContaining('register was dropped: properties are not serialisable as JSON'),
    expect.stringContaining('register was dropped: properties is not an object'),
  ]);
});

it('no method throws for any argument, and other messages are unaffected', async () => {
  const anyValue = fc.oneof(
    fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }),
    fc.constantFrom(Symbol('game'), () => {}, { toJSON: () => undefined }, { toJSON: () => 'text' }),
  );
  const others = ['alias', 'register', 'unregister', 'setSessionId'] as const;
  const method = fc.constantFrom(...(['track', 'page', 'screen', 'identify'] as const), ...others);
  await fc.assert(
    fc.asyncProperty(method, anyValue, anyValue, async (name, ...args) => {
      const service = createService();
      const { client } = createClient(service);
      (client[name] as (...all: unknown[]) => unknown)(...args);
      const id = client.track('valid');
      expect(await client.close()).toBe(0);
      expect([...service.stored.keys()]).toContain(id);
      const window = { fromMs: 0, toMs: Date.now() + 1000 };
      const valid = service.requests[0]?.messages.find(({ messageId }) => messageId === id);
      expect(parseMessage(valid, window)).toMatchObject({ ok: true });
    }),
    { numRuns: 200 },
  );
});

it('only the first call without consent logs which calls are dropped and how to enable them', () => {
  const { client } = createClient(createService(), { consent: undefined });
  for (const name of ['a', 'b', 'c']) client.track(name);
  client.identify('u-1');
  expect(printed.warn).toEqual([
    "[playline] Consent is 'none': track('a') and all later messages are dropped. When the player gives consent, call setConsent('anonymous') or setConsent('full').",
  ]);
});

it('with anonymous consent, identify and alias calls are logged once', () => {
  const { client } = createClient(createService(), { consent: 'anonymous' });
  client.track('a');
  expect(printed.warn).toEqual([]);
  client.identify('u-1');
  client.identify('u-1');
  expect(printed.warn).toEqual([
    "[playline] Consent is 'anonymous': identify() and all later identify and alias calls are dropped. When the player gives consent, call setConsent('full').",
  ]);
});

it('rejected and dropped messages are logged to the console if the game has no listener', async () => {
  const service = createService('some rejected', 'unauthorised');
  const { client } = createClient(service, { onRejected: undefined, onDropped: undefined });
  client.track('one');
  client.track('two');
  await client.flush();
  client.track('three');
  await client.flush();
  expect(printed.warn).toEqual([
    expect.stringContaining('is longer than 256 characters'),
    expect.stringContaining('No such key.'),
  ]);
});

it('dropped messages are passed only to the listener if the game has a listener', async () => {
  const { client } = createClient(createService('unauthorised'));
  client.track('one');
  await client.flush();
  expect(printed).toEqual({ error: [], warn: [], log: [] });
});

it('the debug option logs queued, sent and dropped messages and responses', async () => {
  const service = createService('accepted', 'unauthorised');
  const { client } = createClient(service, { debug: true });
  client.track('one');
  await client.flush();
  client.track('two');
  await client.flush();
  client.setConsent('none');
  client.track('three');
  const lines = [/track\('one'\) queued: \{/, /sending: \{"messages"/, /response: .*accepted/];
  lines.push(/track\('two'\) queued/, /sending/, /response: .*refused/, /not stored: .*No such key/);
  lines.push(/track\('three'\) dropped: consent is none/);
  expect(printed.log.length).toBe(lines.length);
  for (const [at, line] of lines.entries()) expect(printed.log[at]).toMatch(line);
});
