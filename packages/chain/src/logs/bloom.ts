import { keccak } from './words.ts';

const BLOOM_BYTES = 256;
const BITS_MASK = BLOOM_BYTES * 8 - 1;
/** Size of the cache. The same contracts and topics recur, and hashing them is most of the work. */
const REMEMBERED_MAX = 50_000;

/** The three bits of an address or a topic. */
type Bits = readonly [number, number, number];

const remembered = new Map<string, Bits>();

function bitsOf(text: string): Bits {
  const known = remembered.get(text);
  if (known !== undefined) return known;
  const hash = keccak(Buffer.from(text.slice(2), 'hex'));
  const bits: Bits = [
    hash.readUInt16BE(0) & BITS_MASK,
    hash.readUInt16BE(2) & BITS_MASK,
    hash.readUInt16BE(4) & BITS_MASK,
  ];
  if (remembered.size >= REMEMBERED_MAX) remembered.delete(remembered.keys().next().value!);
  remembered.set(text, bits);
  return bits;
}

/** The bloom filter of a block with exactly these logs. */
export function bloomOf(logs: Iterable<{ readonly address: string; readonly topics: readonly string[] }>): Buffer {
  const bloom = Buffer.alloc(BLOOM_BYTES);
  const seen = new Set<string>();
  for (const { address, topics } of logs) for (const text of [address, ...topics]) seen.add(text);
  for (const text of seen) for (const bit of bitsOf(text)) bloom[BLOOM_BYTES - 1 - (bit >> 3)]! |= 1 << (bit & 7);
  return bloom;
}

/** Whether a block claims to have no logs. */
export const isEmptyBloom = (bloom: Buffer): boolean => bloom.every((byte) => byte === 0);
