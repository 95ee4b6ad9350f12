import { expect, it } from 'vitest';
import { murmur2, toPartition } from './murmur2.ts';

/** Test vectors from Kafka's `UtilsTest.testMurmur2`. */
it.each([
  ['abc', 479470107],
  ['21', -973932308],
  ['foobar', -790332482],
  ['a-little-bit-long-string', -985981536],
  ['a-little-bit-longer-string', -1486304829],
  ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
])("murmur2 of %s equals the Java client's hash", (text, hash) => {
  expect(murmur2(Buffer.from(text))).toBe(hash);
});

it('toPartition maps a negative hash to the same partition as the Java client, which clears the sign bit', () => {
  expect(toPartition(Buffer.from('21'), 6)).toBe((-973932308 & 0x7fffffff) % 6);
  expect((-973932308 & 0x7fffffff) % 6).not.toBe(973932308 % 6);
});
