import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createBytesInFlight, type Reservation } from './bytes-in-flight.ts';

const MAX = 100;
const TOO_MANY_REQUESTS = 'TOO_MANY_REQUESTS_ERROR';

function receive(bytesInFlight: ReturnType<typeof createBytesInFlight>, owner: string, bytes: number) {
  const reservation = bytesInFlight.admit(owner, bytes);
  const body = { reservation, isEvicted: false };
  reservation.onEvicted = () => {
    body.isEvicted = true;
  };
  reservation.grow(bytes);
  return body;
}

it('bytes in flight stay within the limit, except for a single request, and are zero after all releases', () => {
  const step = fc.record({
    action: fc.constantFrom('admit', 'grow', 'receive', 'release'),
    owner: fc.constantFrom('a', 'b', 'c'),
    index: fc.nat(9),
    bytes: fc.nat(150),
    elapsedMs: fc.nat(2000),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let now = 0;
      const bytesInFlight = createBytesInFlight(MAX, () => now);
      let open: { reservation: Reservation; bytes: number }[] = [];
      for (const { action, owner, index, bytes, elapsedMs } of steps) {
        now += elapsedMs;
        const at = open[index];
        try {
          if (action === 'admit') open.push({ reservation: bytesInFlight.admit(owner, bytes), bytes: 0 });
          else if (action === 'grow' && at !== undefined) {
            at.reservation.grow(bytes);
            at.bytes = Math.max(at.bytes, bytes);
          } else if (action === 'receive' && at !== undefined)
            at.reservation.onEvicted = () => {
              open = open.filter((each) => each !== at);
            };
        } catch (error) {
          expect(error).toMatchObject({ code: TOO_MANY_REQUESTS });
        }
        if (action === 'release') open.splice(index, 1)[0]?.reservation.release();
        expect(bytesInFlight.used).toBe(open.reduce((sum, request) => sum + request.bytes, 0));
        if (open.filter((request) => request.bytes > 0).length > 1) expect(bytesInFlight.used).toBeLessThanOrEqual(MAX);
      }
      for (const { reservation } of open) {
        reservation.release();
        reservation.release();
      }
      expect(bytesInFlight.used).toBe(0);
    }),
  );
});

it('a single owner cannot grow a body without capacity, and can grow the body once capacity is released', () => {
  const bytesInFlight = createBytesInFlight(MAX);
  const first = bytesInFlight.admit('a', 60);
  first.grow(60);
  expect(() => bytesInFlight.admit('a', 41)).toThrow();
  const second = bytesInFlight.admit('a', 40);
  second.grow(40);
  expect(() => second.grow(41)).toThrow();
  expect(bytesInFlight.used).toBe(100);
  first.release();
  second.grow(100);
  expect(bytesInFlight.used).toBe(100);
});

it("a single owner's bytes in memory count even above the limit", () => {
  const bytesInFlight = createBytesInFlight(MAX);
  bytesInFlight.admit('a', 60).grow(60);
  bytesInFlight.admit('a', 40).resize(50);
  expect(bytesInFlight.used).toBe(110);
  expect(() => bytesInFlight.admit('a', 1)).toThrow();
});

it('a single owner reserves no memory for declared bytes that are not sent', () => {
  const bytesInFlight = createBytesInFlight(MAX);
  for (let caller = 0; caller < 50; caller++) bytesInFlight.admit('a', MAX / 2).grow(1);
  expect(bytesInFlight.used).toBe(50);
  expect(() => bytesInFlight.admit('a', 40)).not.toThrow();
});

it('a single owner can have at most 1,024 concurrent bodies, and other owners are still admitted', () => {
  const bytesInFlight = createBytesInFlight(MAX);
  const bodies = Array.from({ length: 1024 }, () => bytesInFlight.admit('a', 0));
  expect(() => bytesInFlight.admit('a', 0)).toThrow('1024 requests in progress');
  bytesInFlight.admit('b', 0);
  bodies[0]!.release();
  bytesInFlight.admit('a', 0);
});

it("a single owner's requests never evict its own bodies", () => {
  const bytesInFlight = createBytesInFlight(MAX);
  const bodies = [receive(bytesInFlight, 'a', 50), receive(bytesInFlight, 'a', 50)];
  expect(() => bytesInFlight.admit('a', 1)).toThrow();
  expect(bodies.map(({ isEvicted }) => isEvicted)).toEqual([false, false]);
});

it('an owner within its quota evicts as few incomplete bodies as needed from an owner above its quota', () => {
  const bytesInFlight = createBytesInFlight(MAX);
  const bodies = Array.from({ length: 10 }, () => receive(bytesInFlight, 'a', 10));
  const other = receive(bytesInFlight, 'b', 20);
  expect(bodies.map(({ isEvicted }) => isEvicted)).toEqual([true, true, ...Array(8).fill(false)]);
  expect([other.isEvicted, bytesInFlight.used]).toEqual([false, 100]);
});

it('an owner above its quota retains complete bodies, and is rejected until it is within its quota', () => {
  let now = 0;
  const bytesInFlight = createBytesInFlight(MAX, () => now);
  const complete = Array.from({ length: 10 }, () => {
    const { reservation } = receive(bytesInFlight, 'a', 10);
    reservation.onEvicted = null;
    return reservation;
  });
  expect(() => bytesInFlight.admit('b', 10)).toThrow();
  for (const reservation of complete.splice(0, 4)) reservation.release();
  expect(() => bytesInFlight.admit('a', 10)).toThrow();
  bytesInFlight.admit('b', 10).grow(10);
  expect(() => bytesInFlight.admit('a', 10)).not.toThrow();
  now = 10_000;
  expect(bytesInFlight.used).toBe(70);
});

it('an owner may exceed its quota again a few seconds after another owner was rejected', () => {
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

it('an owner above its quota cannot evict the bodies of other owners', () => {
  const bytesInFlight = createBytesInFlight(MAX);
  const other = receive(bytesInFlight, 'b', 40);
  receive(bytesInFlight, 'a', 60);
  expect(() => bytesInFlight.admit('a', 10)).toThrow();
  expect(other.isEvicted).toBe(false);
});

it("an owner's sequential requests are admitted, regardless of how many bodies another owner sends", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: MAX }), { maxLength: 40 }), fc.nat(MAX / 2), (sizes, wanted) => {
      const bytesInFlight = createBytesInFlight(MAX);
      const send = (bytes: number) => {
        try {
          receive(bytesInFlight, 'a', bytes);
        } catch (error) {
          expect(error).toMatchObject({ code: TOO_MANY_REQUESTS });
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
