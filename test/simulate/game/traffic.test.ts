import { EVENT_AGE_MAX_MS, EVENT_AHEAD_MAX_MS } from '@playline/contracts';
import { validateBatch } from '@playline/contracts/test';
import { expect, it } from 'vitest';
import { createLedger } from '../run.ts';
import { ODDITIES } from './players.ts';
import {
  type BatchResponse,
  createExpectation,
  createTraffic,
  differencesOf,
  expectRejection,
  parseBatchResponse,
} from './traffic.ts';
import { VIOLATIONS } from './violations.ts';

function example() {
  const expectation = createExpectation();
  expectation.accepted = 3;
  expectRejection(expectation, { echo: 'a', errors: [['toId', 'INVALID_VALUE']], messages: 1 });
  expectRejection(expectation, { echo: 'b', errors: [['messageId', 'DUPLICATE_MESSAGE_ID']], messages: 2 });
  const response: BatchResponse = {
    success: true,
    accepted: 3,
    rejected: 3,
    rejections: [
      { messageId: 'b', errors: [{ field: 'messageId', code: 'DUPLICATE_MESSAGE_ID' }] },
      { messageId: 'a', errors: [{ field: 'toId', code: 'INVALID_VALUE' }] },
    ],
  };
  return { expectation, response };
}

it('differencesOf ignores the order of rejections', () => {
  const { expectation, response } = example();
  expect(differencesOf(expectation, 200, response)).toEqual([]);
});

const [ofB, ofA] = example().response.rejections as [
  BatchResponse['rejections'][number],
  BatchResponse['rejections'][number],
];

it.each<[string, number, Partial<BatchResponse>]>([
  ['a wrong status', 400, {}],
  ['a wrong number of accepted messages', 200, { accepted: 4 }],
  ['a wrong number of rejected messages', 200, { rejected: 2 }],
  ['a wrong value of success', 200, { success: false }],
  ['a missing rejection', 200, { rejections: [ofA] }],
  ['an unexpected rejection', 200, { rejections: [ofB, ofA, { messageId: 'c', errors: [] }] }],
  ['two entries for one id', 200, { rejections: [ofB, ofA, ofB] }],
  ['a wrong code', 200, { rejections: [ofB, { ...ofA, errors: [{ field: 'toId', code: 'INVALID_FORMAT' }] }] }],
])('differencesOf reports a response with %s', (_name, status, change) => {
  const { expectation, response } = example();
  expect(differencesOf(expectation, status, { ...response, ...change })).toHaveLength(1);
});

it('parseBatchResponse returns null unless the text is a batch response', () => {
  expect(parseBatchResponse(JSON.stringify(example().response))).toEqual(example().response);
  for (const text of ['', 'null', '{}', '[]', '{"code":"VALIDATION_ERROR"}'])
    expect(parseBatchResponse(text), text).toBeNull();
});

const NOW_MS = Date.parse('2026-06-01T12:00:00Z');
const WINDOW = { fromMs: NOW_MS - EVENT_AGE_MAX_MS, toMs: NOW_MS + EVENT_AHEAD_MAX_MS };

function take(seed: number, messages: number, { players = 60, brokenFraction = 0.05, batchMax = 0 } = {}) {
  const run = { seed, tag: '0a1b2c3d4e5f', startedAtMs: NOW_MS };
  const traffic = createTraffic({
    run,
    players,
    brokenFraction,
    ledger: createLedger(),
    ...(batchMax > 0 && { batchMax }),
  });
  const batches = [];
  for (let sent = 0; sent < messages; sent += batches.at(-1)!.messages) batches.push(traffic.next(NOW_MS));
  return { batches, traffic };
}

it('the expectation for every violation and oddity matches the contract', () => {
  const seen = new Set<string>();
  for (const { body, expectation, variants } of take(11, 5_000, { players: 40, brokenFraction: 0.3 }).batches) {
    const document = JSON.parse(body);
    const sources = document.messages.map((element: { messageId?: unknown } | null) => ({
      bytes: Buffer.byteLength(JSON.stringify(element)),
      messageIdText: JSON.stringify(element?.messageId) ?? '',
    }));
    const validated = validateBatch(document, { window: WINDOW, sources });
    if (validated.kind !== 'validated') throw new Error(validated.message);
    const status = validated.response.accepted > 0 ? 200 : 400;
    const differences = differencesOf(expectation, status, validated.response);
    expect({ variants, differences }).toEqual({ variants, differences: [] });
    for (const variant of variants) seen.add(variant);
  }
  for (const { name } of [...VIOLATIONS, ...ODDITIES]) expect(seen, name).toContain(name);
  expect(new Set(VIOLATIONS.map(({ name }) => name)).size).toBe(VIOLATIONS.length);
});

it('createTraffic creates the same batches for the same seed, and different batches for different seeds', () => {
  const [first, again, other] = [take(7, 1000), take(7, 1000), take(8, 100)];
  expect(again.batches).toEqual(first.batches);
  expect(other.batches[0]).not.toEqual(first.batches[0]);
});

it('createTraffic creates batches of 1 to 100 messages with about 900 bytes each and at most one link fact', () => {
  const { batches } = take(2, 8_000);
  for (const batch of batches) {
    expect(JSON.parse(batch.body).messages).toHaveLength(batch.messages);
    expect(batch.expectation.accepted + batch.expectation.rejected).toBe(batch.messages);
    expect(Buffer.byteLength(batch.body)).toBeLessThan(1024 * 1024);
    // Facts are acknowledged in order only if each batch contains at most one fact.
    expect(batch.valid.filter(({ fact }) => fact !== null).length).toBeLessThanOrEqual(1);
  }
  const sizes = batches.map(({ messages }) => messages);
  expect([Math.min(...sizes), Math.max(...sizes)]).toEqual([1, 100]);
  const bytes = batches.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0);
  const messages = sizes.reduce((sum, size) => sum + size, 0);
  expect(bytes / messages).toBeGreaterThan(750);
  expect(bytes / messages).toBeLessThan(1100);
});

it('createTraffic respects batchMax and fillMax', () => {
  const run = { seed: 6, tag: '0a1b2c3d4e5f', startedAtMs: NOW_MS };
  const options = { run, players: 40, brokenFraction: 0, ledger: createLedger(), batchMax: 12, fillMax: 5000 };
  const traffic = createTraffic(options);
  const batches = Array.from({ length: 300 }, () => traffic.next(NOW_MS));
  const sizes = batches.map(({ messages }) => messages);
  expect([Math.min(...sizes), Math.max(...sizes)]).toEqual([1, 12]);
  const messages: { properties?: { fill?: string } }[] = batches.flatMap(({ body }) => JSON.parse(body).messages);
  const longest = Math.max(...messages.map(({ properties }) => properties?.fill?.length ?? 0));
  expect(longest).toBeGreaterThan(4500);
  expect(longest).toBeLessThanOrEqual(5000);
});

it('createTraffic plays every household’s story to the end in a long run', () => {
  const { traffic } = take(5, 6_000, { batchMax: 3 });
  expect(traffic.households.flatMap(({ story }) => story)).toEqual([]);
});
