import { createHash } from 'node:crypto';

/** The location of an activity on its chain. */
export interface ActivityLocation {
  readonly chain: string;
  /** `0x` and 64 hexadecimal digits, in upper or lower case. */
  readonly transactionHash: string;
  readonly logIndex: number;
  /** Zero-based index within an event that reports several activities. */
  readonly item: number;
}

/** A random constant. Changing it would change every id. */
const NAMESPACE = Buffer.from('6f2a1c9e3b7d5e48a0c4d97be1530f86', 'hex');

/** Derives a version 5 UUID (RFC 9562) from the location, so every indexer produces the same 16 bytes. */
export function activityIdOf({ chain, transactionHash, logIndex, item }: ActivityLocation): Buffer {
  const name = `${chain}:${transactionHash.toLowerCase()}:${logIndex}:${item}`;
  const id = createHash('sha1').update(NAMESPACE).update(name).digest().subarray(0, 16);
  id[6] = (id[6]! & 0x0f) | 0x50;
  id[8] = (id[8]! & 0x3f) | 0x80;
  return id;
}
