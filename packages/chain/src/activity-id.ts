import { createHash } from 'node:crypto';

/** Place of an activity on its chain. */
export interface ActivityLocation {
  /** Name of the chain. */
  readonly chain: string;
  /** `0x` and 64 hexadecimal digits, in any case. */
  readonly transactionHash: string;
  readonly logIndex: number;
  /** The index within an event that describes several activities, from 0. */
  readonly item: number;
}

/** Namespace of the ids. A random value that must never change: all existing ids depend on it. */
const NAMESPACE = Buffer.from('6f2a1c9e3b7d5e48a0c4d97be1530f86', 'hex');

/**
 * The id of the activity at a place of a chain. It depends only on the place, so every indexer gives the same id (UUID
 * version 5 of RFC 9562).
 * @returns 16 bytes
 */
export function activityIdOf({ chain, transactionHash, logIndex, item }: ActivityLocation): Buffer {
  const name = `${chain}:${transactionHash.toLowerCase()}:${logIndex}:${item}`;
  const id = createHash('sha1').update(NAMESPACE).update(name).digest().subarray(0, 16);
  id[6] = (id[6]! & 0x0f) | 0x50;
  id[8] = (id[8]! & 0x3f) | 0x80;
  return id;
}
