import { readFileSync } from 'node:fs';
import * as contracts from '@playline/contracts';
import { afterEach, expect, it, vi } from 'vitest';
import { LIBRARY_VERSION } from './client.ts';
import type { ConsentLevel, IdentityType, MessageType, Surface } from './index.ts';
import * as clientLimits from './message.ts';
import { createClient } from './test/client.ts';
import { createService } from './test/service.ts';

afterEach(() => vi.unstubAllGlobals());

it('the client and the contract have the same limits', () => {
  expect(clientLimits.BATCH_MESSAGES_MAX).toBe(contracts.BATCH_MESSAGES_MAX);
  expect(clientLimits.MESSAGE_BYTES_MAX).toBe(contracts.MESSAGE_BYTES_MAX);
  expect(clientLimits.EVENT_AGE_MAX_MS).toBe(contracts.EVENT_AGE_MAX_MS);
  const lengths = Object.entries(contracts.CONTEXT_CODE_POINTS_MAX).filter(
    ([, max]) => max !== clientLimits.CONTEXT_CHARACTERS_DEFAULT_MAX,
  );
  expect(Object.fromEntries(lengths)).toEqual(clientLimits.CONTEXT_CHARACTERS_MAX);
});

it('the client and the contract have the same enumeration values, or this file does not compile', () => {
  const contract: {
    type: (typeof contracts.MESSAGE_TYPES)[number];
    identity: (typeof contracts.IDENTITY_TYPES)[number];
    surface: (typeof contracts.SURFACES)[number];
    consent: Exclude<(typeof contracts.CONSENT_STATUSES)[number], 'not_set'>;
  } = { type: 'track', identity: 'steam', surface: 'web', consent: 'full' };
  const client: { type: MessageType; identity: IdentityType; surface: Surface; consent: ConsentLevel } = contract;
  const same: typeof contract = client;
  expect(same).toBe(contract);
});

it('the contract accepts every message type that the client sends, even without crypto.randomUUID', async () => {
  vi.stubGlobal('crypto', { getRandomValues: crypto.getRandomValues.bind(crypto) });
  const service = createService();
  const { client } = createClient(service, { surface: 'unity', deviceId: 'd', sessionId: 's', test: true });
  client.track('level_done', { level: 3 });
  client.page({ section: 'shop' });
  client.screen('inventory');
  client.identify('u-1', { identityType: 'epic', traits: { plan: 'free' } });
  client.alias({ fromId: 'a', toId: 'b', toType: 'email' });
  client.track('level_done');
  await client.flush();
  const window = { fromMs: Date.now() - 1000, toMs: Date.now() };
  const messages = service.requests[0]?.messages ?? [];
  expect(messages.length).toBe(6);
  for (const message of messages) expect(contracts.parseMessage(message, window)).toMatchObject({ ok: true });
  expect(messages.map(({ type, userId }) => [type, userId])).toEqual([
    ['track', undefined],
    ['page', undefined],
    ['screen', undefined],
    ['identify', 'u-1'],
    ['alias', undefined],
    ['track', 'u-1'],
  ]);
  expect(messages[2]).toMatchObject({
    eventName: 'inventory',
    surface: 'unity',
    deviceId: 'd',
    sessionId: 's',
    test: true,
  });
});

it('the client reports the version in package.json', () => {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  expect(LIBRARY_VERSION).toBe(manifest.version);
});
