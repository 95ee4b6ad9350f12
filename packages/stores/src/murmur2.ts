const SEED = 0x9747b28c;
const M = 0x5bd1e995;
const R = 24;

/** The 32-bit murmur2 of Kafka's Java client, as a signed integer. Implemented here, because BigInt is slow. */
export function murmur2(data: Uint8Array): number {
  const length = data.length;
  let h = SEED ^ length;
  let i = 0;
  for (; i + 4 <= length; i += 4) {
    let k = data[i]! | (data[i + 1]! << 8) | (data[i + 2]! << 16) | (data[i + 3]! << 24);
    k = Math.imul(k, M);
    k ^= k >>> R;
    k = Math.imul(k, M);
    h = Math.imul(h, M) ^ k;
  }
  const rest = length - i;
  if (rest === 3) h ^= data[i + 2]! << 16;
  if (rest >= 2) h ^= data[i + 1]! << 8;
  if (rest >= 1) h = Math.imul(h ^ data[i]!, M);
  h ^= h >>> 13;
  h = Math.imul(h, M);
  return h ^ (h >>> 15);
}

/** Returns the partition that the Java client's default partitioner selects. Clears the sign bit, as Java does. */
export function toPartition(key: Uint8Array, partitionCount: number): number {
  return (murmur2(key) & 0x7fffffff) % partitionCount;
}
