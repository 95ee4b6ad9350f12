import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createBytesInFlight, type Reservation } from './bytes-in-flight.ts';

const MAX = 100;
const REFUSED = 'TOO_MANY_REQUESTS_ERROR';

/** Receives a body of `bytes`, and records whether it was evicted. */
function receive(bytesInFlight: ReturnType<typeof createBytesInFlight>, owner: string, bytes: number) {
  const reservation = bytesInFlight.admit(owner, bytes);
  const body = { reservation, isEvicted: false };
  reservation.onEvicted = () => {
    body.isEvicted = true;
  };
  reservation.grow(bytes);
  return body;
}

it('bytes in flight never exceed their bound, except for a single request, and end at zero', () => {
  const step = fc.record({
    what: fc.constantFrom('admit', 'grow', 'receive', 'release'),
    owner: fc.constantFrom('a', 'b', 'c'),
    which: fc.nat(9),
    bytes: fc.nat(150),
    passMs: fc.nat(2000),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let now = 0;
      const bytesInFlight = createBytesInFlight(MAX, () => now);
      let open: { reservation: Reservation; bytes: number }[] = [];
      for (const { what, owner, which, bytes, passMs } of steps) {
        now += passMs;
        const at = open[which];
        try {
          if (what === 'admit') open.push({ reservation: bytesInFlight.admit(owner, bytes), bytes: 0 });
          else if (what === 'grow' && at !== undefined) {
            at.reservation.grow(bytes);
            at.bytes = Math.max(at.bytes, bytes);
          } else if (what === 'receive' && at !== undefined)
            at.reservation.onEvicted = () => {
              open = open.filter((each) => each !== at);
            };
        } catch (error) {
          expect(error).toMatchObject({ code: REFUSED });
        }
        if (what === 'release') open.splice(which, 1)[0]?.reservation.release();
        expect(bytesInFlight.held).toBe(open.reduce((sum, one) => sum + one.bytes, 0));
        if (open.filter((one) => one.bytes > 0).length > 1) expect(bytesInFlight.held).toBeLessThanOrEqual(MAX);
      }
      for (const { reservation } of open) {
        reservation.release();
        reservation.release();
      }
      expect(bytesInFlight.held).toBe(0);
    }),
  );
});

it('a single owner cannot grow without capacity, keeps its counted bytes, and can grow once there is capacity', () => {
  const bytesInFlight = createBytesInFlight(MAX);
  const first = bytesInFlight.admit('a', 60);
  first.grow(60);
  expect(() => bytesInFlight.admit('a', 41)).toThrow();
  const second = bytesInFlight.admit('a', 40);
  second.grow(40);
  expect(() => second.grow(41)).toThrow();
  expect(bytesInFlight.held).toBe(100);
  first.release();
  second.grow(100);
  expect(bytesInFlight.held).toBe(100);
});

it('a single owner has all its bytes in memory counted, even when they exceed the bound', () => {
  const bytesInFlight = createBytesInFlight(MAX);
  bytesInFlight.admit('a', 60).grow(60);
  bytesInFlight.admit('a', 40).resize(50);
  expect(bytesInFlight.held).toBe(110);
  expect(() => bytesInFlight.admit('a', 1)).toThrow();
});

it('a single owner reserves nothing with requests that announce bytes without sending them', () => {
  const bytesInFlight = createBytesInFlight(MAX);
  for (let caller = 0; caller < 50; caller++) bytesInFlight.admit('a', MAX / 2).grow(1);
  expect(bytesInFlight.held).toBe(50);
  expect(() => bytesInFlight.admit('a', 40)).not.toThrow();
});

it('a single owner has at most 1,024 concurrent bodies, however short, and other owners are admitted', () => {
  const bytesInFlight = createBytesInFlight(MAX);
  const bodies = Array.from({ length: 1024 }, () => bytesInFlight.admit('a', 0));
  expect(() => bytesInFlight.admit('a', 0)).toThrow('1024 requests in progress');
  bytesInFlight.admit('b', 0);
  bodies[0]!.release();
  bytesInFlight.admit('a', 0);
});

it('a single owner never has its bodies evicted by its own requests', () => {
  const bytesInFlight = createBytesInFlight(MAX);
  const bodies = [receive(bytesInFlight, 'a', 50), receive(bytesInFlight, 'a', 50)];
  expect(() => bytesInFlight.admit('a', 1)).toThrow();
  expect(bodies.map(({ isEvicted }) => isEvicted)).toEqual([false, false]);
});

it('an owner within its share evicts as few as necessary of the oldest arriving bodies of an owner beyond its share', () => {
  const bytesInFlight = createBytesInFlight(MAX);
  const bodies = Array.from({ length: 10 }, () => receive(bytesInFlight, 'a', 10));
  const other = receive(bytesInFlight, 'b', 20);
  expect(bodies.map(({ isEvicted }) => isEvicted)).toEqual([true, true, ...Array(8).fill(false)]);
  expect([other.isEvicted, bytesInFlight.held]).toEqual([false, 100]);
});

it('an owner beyond its share keeps fully received bodies, and is refused until it is within its share', () => {
  let now = 0;
  const bytesInFlight = createBytesInFlight(MAX, () => now);
  const whole = Array.from({ length: 10 }, () => {
    const { reservation } = receive(bytesInFlight, 'a', 10);
    reservation.onEvicted = null;
    return reservation;
  });
  expect(() => bytesInFlight.admit('b', 10)).toThrow();
  for (const reservation of whole.splice(0, 4)) reservation.release();
  // The free capacity is reserved for the other owner.
  expect(() => bytesInFlight.admit('a', 10)).toThrow();
  bytesInFlight.admit('b', 10).grow(10);
  expect(() => bytesInFlight.admit('a', 10)).not.toThrow();
  now = 10_000;
  expect(bytesInFlight.held).toBe(70);
});

it('an owner may exceed its share again some seconds after another owner was refused', () => {
  let now = 0;
  const bytesInFlight = createBytesInFlight(MAX, () => now);
  const first = bytesInFlight.admit('a', 100);
  first.grow(100);
  expect(() => bytesInFlight.admit('b', 10)).toThrow();
  first.resize(60);
  expect(() => bytesInFlight.admit('a', 10)).toThrow();
  now = 5000;
  expect(() => bytesInFlight.admit('a', 10)).not.toThrow();
});

it('an owner beyond its share cannot evict bodies of other owners', () => {
  const bytesInFlight = createBytesInFlight(MAX);
  const other = receive(bytesInFlight, 'b', 40);
  receive(bytesInFlight, 'a', 60);
  expect(() => bytesInFlight.admit('a', 10)).toThrow();
  expect(other.isEvicted).toBe(false);
});

it("an owner's sequential requests are admitted, however many bodies another owner is sending", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: MAX }), { maxLength: 40 }), fc.nat(MAX / 2), (sizes, wanted) => {
      const bytesInFlight = createBytesInFlight(MAX);
      const send = (bytes: number) => {
        try {
          receive(bytesInFlight, 'a', bytes);
        } catch (error) {
          expect(error).toMatchObject({ code: REFUSED });
        }
      };
      for (const bytes of sizes) {
        send(bytes);
        const other = receive(bytesInFlight, 'b', wanted);
        expect(other.isEvicted).toBe(false);
        other.reservation.release();
      }
    }),
  );
});
