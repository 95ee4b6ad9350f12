import { createHash } from 'node:crypto';

/** Where an activity is on its chain. */
export interface ActivityLocation {
  readonly chain: string;
  /** `0x` and 64 hexadecimal digits, in upper or lower case. */
  readonly transactionHash: string;
  readonly logIndex: number;
  /** Index within an event that reports several activities, from 0. */
  readonly item: number;
}

/** A random constant: all existing ids depend on it. */
const NAMESPACE = Buffer.from('6f2a1c9e3b7d5e48a0c4d97be1530f86', 'hex');

/** UUID version 5 (RFC 9562) of the location: every indexer derives the same 16 bytes. */
export function activityIdOf({ chain, transactionHash, logIndex, item }: ActivityLocation): Buffer {
  const name = `${chain}:${transactionHash.toLowerCase()}:${logIndex}:${item}`;
  const id = createHash('sha1').update(NAMESPACE).update(name).digest().subarray(0, 16);
  id[6] = (id[6]! & 0x0f) | 0x50;
  id[8] = (id[8]! & 0x3f) | 0x80;
  return id;
}
