import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createBytesInFlight, type Hold } from './bytes-in-flight.ts';

const MAX = 100;

it('never exceeds its bound except for a lone request, and ends at zero', () => {
  const step = fc.record({ what: fc.constantFrom('admit', 'grow', 'release'), which: fc.nat(9), bytes: fc.nat(150) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const bytesInFlight = createBytesInFlight(MAX);
      const open: { hold: Hold; bytes: number }[] = [];
      for (const { what, which, bytes } of steps) {
        const at = open[which];
        try {
          if (what === 'admit') open.push({ hold: bytesInFlight.admit(bytes), bytes: 0 });
          else if (what === 'grow' && at !== undefined) {
            at.hold.grow(bytes);
            at.bytes = Math.max(at.bytes, bytes);
          }
        } catch (error) {
          expect(error).toMatchObject({ code: 'TOO_MANY_REQUESTS_ERROR' });
        }
        if (what === 'release') open.splice(which, 1)[0]?.hold.release();
        expect(bytesInFlight.held).toBe(open.reduce((sum, one) => sum + one.bytes, 0));
        if (open.filter((one) => one.bytes > 0).length > 1) expect(bytesInFlight.held).toBeLessThanOrEqual(MAX);
      }
      for (const { hold } of open) {
        hold.release();
        hold.release();
      }
      expect(bytesInFlight.held).toBe(0);
    }),
  );
});

it('refuses growth without room, keeps what was counted before, and allows the growth once there is room', () => {
  const bytesInFlight = createBytesInFlight(MAX);
  const first = bytesInFlight.admit(60);
  first.grow(60);
  expect(() => bytesInFlight.admit(41)).toThrow();
  const second = bytesInFlight.admit(40);
  second.grow(40);
  expect(() => second.grow(41)).toThrow();
  expect(bytesInFlight.held).toBe(100);
  first.release();
  second.grow(100);
  expect(bytesInFlight.held).toBe(100);
});

it('counts the bytes that are really in memory even when they exceed the bound', () => {
  const bytesInFlight = createBytesInFlight(MAX);
  bytesInFlight.admit(60).grow(60);
  bytesInFlight.admit(40).settle(50);
  expect(bytesInFlight.held).toBe(110);
  expect(() => bytesInFlight.admit(1)).toThrow();
});

it('counts nothing for callers that announce many bytes and send none', () => {
  const bytesInFlight = createBytesInFlight(MAX);
  for (let caller = 0; caller < 50; caller++) bytesInFlight.admit(MAX / 2).grow(1);
  expect(bytesInFlight.held).toBe(50);
  expect(() => bytesInFlight.admit(40)).not.toThrow();
});
