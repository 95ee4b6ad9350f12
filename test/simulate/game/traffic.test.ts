import { EVENT_AGE_MAX_MS, EVENT_AHEAD_MAX_MS, validateBatch } from '@playline/contracts';
import { describe, expect, it } from 'vitest';
import { createLedger } from '../run.ts';
import { BREAKAGES } from './breakage.ts';
import { ODDITIES } from './messages.ts';
import {
  createExpectation,
  createTraffic,
  differencesOf,
  expectRejection,
  parseVerdict,
  type Verdict,
} from './traffic.ts';

function example() {
  const expectation = createExpectation();
  expectation.accepted = 3;
  expectRejection(expectation, { echo: 'a', errors: [['toId', 'INVALID_VALUE']], messages: 1 });
  expectRejection(expectation, { echo: 'b', errors: [['messageId', 'DUPLICATE_MESSAGE_ID']], messages: 2 });
  const verdict: Verdict = {
    success: true,
    accepted: 3,
    rejected: 3,
    rejections: [
      { messageId: 'b', errors: [{ field: 'messageId', code: 'DUPLICATE_MESSAGE_ID' }] },
      { messageId: 'a', errors: [{ field: 'toId', code: 'INVALID_VALUE' }] },
    ],
  };
  return { expectation, verdict };
}

describe('differencesOf', () => {
  it('returns none for the expected answer, whatever the order of its entries', () => {
    const { expectation, verdict } = example();
    expect(differencesOf(expectation, 200, verdict)).toEqual([]);
  });

  it.each<[string, number, Partial<Verdict>]>([
    ['another status', 400, {}],
    ['another number of accepted messages', 200, { accepted: 4 }],
    ['another number of rejected messages', 200, { rejected: 2 }],
    ['success that is not reported', 200, { success: false }],
    ['a rejection too few', 200, { rejections: example().verdict.rejections.slice(1) }],
    ['a rejection too many', 200, { rejections: [...example().verdict.rejections, { messageId: 'c', errors: [] }] }],
    ['two entries of one id', 200, { rejections: [...example().verdict.rejections, example().verdict.rejections[0]!] }],
    [
      'another code',
      200,
      {
        rejections: [
          example().verdict.rejections[0]!,
          { messageId: 'a', errors: [{ field: 'toId', code: 'INVALID_FORMAT' }] },
        ],
      },
    ],
  ])('reports %s', (_name, status, change) => {
    const { expectation, verdict } = example();
    expect(differencesOf(expectation, status, { ...verdict, ...change })).toHaveLength(1);
  });
});

describe('parseVerdict', () => {
  it('accepts a MessagesResponse and nothing else', () => {
    expect(parseVerdict(JSON.stringify(example().verdict))).toEqual(example().verdict);
    for (const text of ['', 'null', '{}', '[]', '{"code":"VALIDATION_ERROR"}'])
      expect(parseVerdict(text), text).toBeNull();
  });
});

const NOW_MS = Date.parse('2026-06-01T12:00:00Z');
const WINDOW = { fromMs: NOW_MS - EVENT_AGE_MAX_MS, toMs: NOW_MS + EVENT_AHEAD_MAX_MS };

describe('the expected answer of a batch', () => {
  it('equals the answer of the contract itself, for batches with every breakage and oddity', () => {
    const run = { seed: 11, tag: '0a1b2c3d4e5f', startedAtMs: NOW_MS };
    const traffic = createTraffic({ run, players: 40, brokenShare: 0.2, ledger: createLedger() });
    for (let sent = 0; sent < 400; sent++) {
      const { body, expectation, ways } = traffic.next(NOW_MS);
      const document = JSON.parse(body);
      const sources = document.messages.map((element: unknown) => ({
        bytes: Buffer.byteLength(JSON.stringify(element)),
        messageIdText: messageIdTextOf(element),
      }));
      const verdict = validateBatch(document, { window: WINDOW, sources });
      if (verdict.kind !== 'validated') throw new Error(`a fault instead of a verdict: ${verdict.message}`);
      const status = verdict.response.accepted > 0 ? 200 : 400;
      expect({ ways, differences: differencesOf(expectation, status, verdict.response) }).toEqual({
        ways,
        differences: [],
      });
    }
  });
});

function messageIdTextOf(element: unknown): string {
  const id = (element as { messageId?: unknown } | null)?.messageId;
  return id === undefined ? '' : JSON.stringify(id);
}

const run = (seed: number) => ({ seed, tag: '0a1b2c3d4e5f', startedAtMs: NOW_MS });

function take(seed: number, messages: number) {
  const ledger = createLedger();
  const traffic = createTraffic({ run: run(seed), players: 60, brokenShare: 0.05, ledger });
  const batches = [];
  for (let sent = 0; sent < messages; ) {
    const batch = traffic.next(NOW_MS);
    batches.push(batch);
    sent += batch.messages;
  }
  return { batches, traffic, ledger };
}

describe('createTraffic', () => {
  it('makes the same batches for the same seed, and others for another', () => {
    const [first, again, other] = [take(7, 3000), take(7, 3000), take(8, 3000)];
    expect(again.batches).toEqual(first.batches);
    expect(other.batches[0]).not.toEqual(first.batches[0]);
  });

  it('uses every breakage and every oddity within 5,000 messages', () => {
    const seen = new Set(take(1, 5000).batches.flatMap(({ ways }) => ways));
    for (const { name } of [...BREAKAGES, ...ODDITIES]) expect(seen, name).toContain(name);
  });

  it('names every breakage once', () => {
    expect(new Set(BREAKAGES.map(({ name }) => name)).size).toBe(BREAKAGES.length);
  });

  it('makes batches of 1 to 100 messages, counts them and keeps them below a mebibyte', () => {
    const { batches } = take(2, 20_000);
    for (const batch of batches) {
      const { messages } = JSON.parse(batch.body);
      expect(messages).toHaveLength(batch.messages);
      expect(batch.expectation.accepted + batch.expectation.rejected).toBe(batch.messages);
      expect(Buffer.byteLength(batch.body)).toBeLessThan(1024 * 1024);
    }
    const sizes = batches.map(({ messages }) => messages);
    expect([Math.min(...sizes), Math.max(...sizes)]).toEqual([1, 100]);
  });

  it('makes messages of about 900 bytes', () => {
    const { batches } = take(3, 20_000);
    const bytes = batches.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0);
    const messages = batches.reduce((sum, batch) => sum + batch.messages, 0);
    expect(bytes / messages).toBeGreaterThan(750);
    expect(bytes / messages).toBeLessThan(1100);
  });

  it('makes batches up to a given size, and events with filler up to a given length', () => {
    const options = { run: run(6), players: 40, brokenShare: 0, ledger: createLedger(), batchMax: 12, fillMax: 5000 };
    const traffic = createTraffic(options);
    const batches = Array.from({ length: 300 }, () => traffic.next(NOW_MS));
    const sizes = batches.map(({ messages }) => messages);
    expect([Math.min(...sizes), Math.max(...sizes)]).toEqual([1, 12]);
    const fills = batches.flatMap(({ body }) =>
      (JSON.parse(body).messages as { properties?: { fill?: string } }[]).map(
        ({ properties }) => properties?.fill?.length ?? 0,
      ),
    );
    expect(Math.max(...fills)).toBeGreaterThan(4500);
    expect(Math.max(...fills)).toBeLessThanOrEqual(5000);
  });

  it('puts at most one link fact into a batch, so that acknowledgements have the order of facts', () => {
    for (const { sound } of take(4, 20_000).batches)
      expect(sound.filter(({ fact }) => fact !== null).length).toBeLessThanOrEqual(1);
  });

  it('finishes every story in a long run', () => {
    const { traffic } = take(5, 60_000);
    expect(traffic.households.flatMap(({ story }) => story)).toEqual([]);
  });
});
