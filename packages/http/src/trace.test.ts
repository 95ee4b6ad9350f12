import fc from 'fast-check';
import { expect, it } from 'vitest';
import { traceOf } from './trace.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const parentId = '00f067aa0ba902b7';

it('traceOf keeps the ids of a traceparent of any version, but not the sampled flag, so that callers cannot choose which traces are recorded', () => {
  for (const text of [
    `00-${traceId}-${parentId}-01`,
    `00-${traceId}-${parentId}-00`,
    `cc-${traceId}-${parentId}-01`,
    `cc-${traceId}-${parentId}-01-more-of-a-later-version`,
    `01-${traceId}-${parentId}-fe-`,
    `fe-${traceId}-${parentId}-ff`,
  ])
    expect(traceOf(text)).toEqual({ traceId, traceparent: `00-${traceId}-${parentId}-00` });
});

it('traceOf returns 55 characters for headers of any length', () => {
  const later = fc.tuple(fc.constantFrom('00', '01', 'cc', 'fe'), fc.string({ maxLength: 200 }), fc.nat(15_000));
  fc.assert(
    fc.property(later, ([version, text, length]) => {
      const header = `${version}-${traceId}-${parentId}-01-${text}${'x'.repeat(length)}`;
      expect(traceOf(header).traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/);
    }),
  );
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
  `cc-${traceId}-${parentId}-01x`,
  `cc-${traceId}-${parentId}-0`,
  `cc-${'0'.repeat(32)}-${parentId}-01-x`,
])('traceOf replaces the invalid header %j with a new trace', (text) => {
  const trace = traceOf(text);
  expect(trace.traceId).not.toBe(traceId);
  expect(traceOf(trace.traceparent)).toEqual(trace);
});

it('traceOf creates unique ids across refills of its random pool', () => {
  const ids = Array.from({ length: 1000 }, () => traceOf(undefined).traceId);
  expect(new Set(ids).size).toBe(1000);
});
