import { describe, expect, it } from 'vitest';
import { BREAKAGES } from './breakage.ts';
import { createLedger } from './ledger.ts';
import { ODDITIES } from './oddities.ts';
import { createTraffic } from './traffic.ts';

const NOW_MS = Date.parse('2026-06-01T12:00:00Z');
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

  it('puts at most one link fact into a batch, so that acknowledgements have the order of facts', () => {
    for (const { sound } of take(4, 20_000).batches)
      expect(sound.filter(({ fact }) => fact !== null).length).toBeLessThanOrEqual(1);
  });

  it('finishes every story in a long run', () => {
    const { traffic } = take(5, 60_000);
    expect(traffic.households.flatMap(({ story }) => story)).toEqual([]);
  });
});
