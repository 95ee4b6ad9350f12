import { expect, it } from 'vitest';
import { murmur2, toPartition } from './murmur2.ts';

/** Vectors of Kafka's own `UtilsTest.testMurmur2`. */
it.each([
  ['21', -973932308],
  ['foobar', -790332482],
  ['a-little-bit-long-string', -985981536],
  ['a-little-bit-longer-string', -1486304829],
  ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
])('hashes %s as the Java client does', (text, hash) => {
  expect(murmur2(Buffer.from(text))).toBe(hash);
});

it('hashes the bytes of Kafka’s last vector as the Java client does', () => {
  expect(murmur2(Buffer.from('abc'))).toBe(479470107);
});

it('clears the sign bit instead of taking the absolute value', () => {
  expect(toPartition(Buffer.from('21'), 6)).toBe((-973932308 & 0x7fffffff) % 6);
  expect((-973932308 & 0x7fffffff) % 6).not.toBe(973932308 % 6);
});
