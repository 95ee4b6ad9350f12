import { createHash } from 'node:crypto';

/** Where an activity is on its chain. */
export interface ActivityPlace {
  /** Name of the chain. */
  readonly chain: string;
  /** `0x` and 64 hexadecimal digits, in any case. */
  readonly transactionHash: string;
  readonly logIndex: number;
  /** The index within an event that describes several activities, from 0. */
  readonly item: number;
}

/** Namespace of the ids. Drawn once, and must never change: every id that was ever given depends on it. */
const NAMESPACE = Buffer.from('6f2a1c9e3b7d5e48a0c4d97be1530f86', 'hex');

/**
 * The id of what happened at a place of a chain: whoever finds it there, whenever, gives it the same one (UUID version 5 of
 * RFC 9562).
 * @returns 16 bytes
 */
export function activityIdOf({ chain, transactionHash, logIndex, item }: ActivityPlace): Buffer {
  const name = `${chain}:${transactionHash.toLowerCase()}:${logIndex}:${item}`;
  const id = createHash('sha1').update(NAMESPACE).update(name).digest().subarray(0, 16);
  id[6] = (id[6]! & 0x0f) | 0x50;
  id[8] = (id[8]! & 0x3f) | 0x80;
  return id;
}
