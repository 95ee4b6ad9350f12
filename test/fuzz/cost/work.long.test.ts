import { EVENT_AGE_MAX_MS, EVENT_AHEAD_MAX_MS } from '@playline/contracts';
import { createRandom } from '@playline/testkit/random';
import { afterEach, expect, it, vi } from 'vitest';
import {
  type BatchData,
  createBatchReader,
  toResponseText,
} from '../../../services/gateway/src/routes/messages/handler.ts';
import { createInitialGenomes, mutateTimes, toBody } from './genome.ts';
import { typicalBody } from './typical.ts';

const NOW = new Date();
const CONTEXT = {
  window: { fromMs: NOW.getTime() - EVENT_AGE_MAX_MS, toMs: NOW.getTime() + EVENT_AHEAD_MAX_MS },
  envelope: { schemaId: 1, environmentId: 'fuzz-test', receivedAt: NOW.getTime(), traceId: 'ab'.repeat(16) },
  keyOf: () => Buffer.alloc(16),
};
const read = createBatchReader(new Set());
afterEach(() => vi.restoreAllMocks());

/** Reads a body. @returns null if the gateway rejects the whole body */
function tryRead(body: Buffer): BatchData | null {
  try {
    return read(body, CONTEXT);
  } catch {
    return null;
  }
}

const SEED = 20_261_122;
const STEPS = 80;
const random = createRandom(SEED);
const first = createInitialGenomes();
const genomes = [
  ...first,
  ...Array.from({ length: STEPS }, () => mutateTimes(first[random.below(first.length)]!, 1 + random.below(6), random)),
];

it('the gateway calls JSON.parse only for single strings, a few times per string, and limits the response size', () => {
  tryRead(typicalBody(1_000, NOW));
  const parse = vi.spyOn(JSON, 'parse');
  let [errorsMax, checked] = [0, 0];
  for (const genome of genomes) {
    const body = toBody(genome, NOW);
    parse.mockClear();
    const batch = tryRead(body);
    const texts = parse.mock.calls.map(([text]) => text);
    for (const text of texts) expect(text[0]).toBe('"');
    expect(texts.reduce((sum, { length }) => sum + length, 0)).toBeLessThanOrEqual(3 * body.length);
    if (batch === null) continue;
    checked++;
    const errors = batch.entries.reduce((sum, { errors }) => sum + errors.length, 0);
    errorsMax = Math.max(errorsMax, errors);
    // At most one error per field and code: for 19 message fields, 12 context fields, rules across fields, duplicate
    // ids and sizes.
    expect(errors).toBeLessThanOrEqual(batch.rejected * 40);
    expect(Buffer.byteLength(toResponseText(batch))).toBeLessThanOrEqual(2 * body.length + errors * 200 + 100 * 40);
    expect(batch.rejections.records.length).toBeLessThanOrEqual(Math.min(100, 10 + body.length / 256));
  }
  // Guards against a vacuous test: many bodies must be batches, and some must have many errors.
  expect(checked).toBeGreaterThan(50);
  expect(errorsMax).toBeGreaterThan(2_500);
});

it.each([200, 1_000, 20_000, 94_100, 400_000, 1_000_000])(
  'every message of a typical body of about %i bytes is valid',
  (bytes) => {
    const body = typicalBody(bytes, NOW);
    expect(body.length).toBeGreaterThan(bytes / 2);
    expect(body.length).toBeLessThan(bytes * 1.2 + 200);
    expect(read(body, CONTEXT)).toMatchObject({ rejected: 0 });
  },
);
