import { EVENT_AGE_MAX_MS, EVENT_AHEAD_MAX_MS, judgeBatch } from '@playline/contracts';
import { describe, expect, it } from 'vitest';
import { differencesOf } from './expectation.ts';
import { createLedger } from './ledger.ts';
import { createTraffic } from './traffic.ts';

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
      const verdict = judgeBatch(document, { window: WINDOW, sources });
      if (verdict.kind !== 'judged') throw new Error(`a fault instead of a verdict: ${verdict.message}`);
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
