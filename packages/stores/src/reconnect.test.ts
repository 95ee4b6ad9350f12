import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createConnectGate } from './connection-faults.ts';

const refused = Object.assign(new Error('refused'), { code: 'CERT_UNTRUSTED' });
const away = Object.assign(new Error('away'), { code: 'ECONNREFUSED' });

it('lets a broker that refuses us be tried at most some tens of times in a minute, however often somebody asks', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 400 }), (pausesMs) => {
      let now = 0;
      const gate = createConnectGate('Kafka', () => now);
      let attempts = 0;
      for (const pauseMs of pausesMs) {
        now += pauseMs;
        if (gate.refusalOf('a:1') !== null) continue;
        attempts++;
        gate.settled('a:1', refused);
      }
      // 100, 200, 400 … ms, then 5 s each: seven attempts lie in the first thirteen seconds.
      expect(attempts).toBeLessThanOrEqual(8 + Math.ceil(now / 5_000));
    }),
  );
});

it('forgets a refusal with the first success, and keeps nobody from a broker that is away or from another one', () => {
  const gate = createConnectGate('Kafka', () => 0);
  gate.settled('a:1', refused);
  expect(gate.refusalOf('a:1')).toBe(refused);
  expect(gate.refusalOf('b:1')).toBeNull();
  gate.settled('a:1', null);
  expect(gate.refusalOf('a:1')).toBeNull();
  gate.settled('a:1', away);
  expect(gate.refusalOf('a:1')).toBeNull();
});
