import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { traceOf } from './trace.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const parentId = '00f067aa0ba902b7';

describe('traceOf', () => {
  it('keeps a valid traceparent, of this version or a later one', () => {
    for (const text of [
      `00-${traceId}-${parentId}-01`,
      `00-${traceId}-${parentId}-00`,
      `cc-${traceId}-${parentId}-01-x`,
    ])
      expect(traceOf(text)).toEqual({ traceId, traceparent: text });
  });

  it.each([
    undefined,
    '',
    `00-${traceId}-${parentId}`,
    `00-${traceId}-${parentId}-01-more`,
    `ff-${traceId}-${parentId}-01`,
    `00-${'0'.repeat(32)}-${parentId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${parentId}-01`,
    ` 00-${traceId}-${parentId}-01`,
  ])('makes a trace of its own instead of %j', (text) => {
    const trace = traceOf(text);
    expect(trace.traceId).not.toBe(traceId);
    expect(traceOf(trace.traceparent)).toEqual(trace);
  });

  it('makes different ids, across refills too', () => {
    const ids = Array.from({ length: 1000 }, () => traceOf(undefined).traceId);
    expect(new Set(ids).size).toBe(1000);
  });

  it('gives 32 hex characters whatever the header holds', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(traceOf(text).traceId).toMatch(/^[0-9a-f]{32}$/);
      }),
    );
  });
});
