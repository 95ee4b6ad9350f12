import { setTimeout as delay } from 'node:timers/promises';
import type { LogBounds, LogReader } from './log.ts';
import { toPartition } from './murmur2.ts';

/** Transactions last ten seconds at most, and brokers look for older ones every ten. */
const OPEN_MAX_MS = 40_000;
const LOOK_EVERY_MS = 50;

/** A transaction of a topic did not end in time. Records behind its start cannot be read. */
export class OpenTransactionFault extends Error {
  override readonly name = 'OpenTransactionFault';
}

/**
 * The bounds of what a topic holds now, once no transaction in front of these ends is open: whoever reads up to them
 * misses nothing.
 * @param key only its partition is waited for and returned; without a key all of them are
 * @returns an empty list when the topic does not exist
 * @throws OpenTransactionFault, or Error of the brokers
 */
export async function awaitDecided(
  log: Pick<LogReader, 'bounds'>,
  topic: string,
  key?: Buffer,
): Promise<readonly LogBounds[]> {
  const all = await log.bounds(topic, { undecided: true });
  const only = key === undefined ? null : toPartition(key, all.length);
  const ends = all.filter(({ partition }) => only === null || partition === only);
  const untilMs = performance.now() + OPEN_MAX_MS;
  for (;;) {
    const decided = new Map((await log.bounds(topic)).map(({ partition, end }) => [partition, end]));
    const open = ends.find(({ partition, end }) => (decided.get(partition) ?? 0) < end);
    if (open === undefined) return ends;
    if (performance.now() > untilMs)
      throw new OpenTransactionFault(
        `a transaction on ${topic}/${open.partition} has been open for more than ${OPEN_MAX_MS / 1_000} s`,
      );
    await delay(LOOK_EVERY_MS);
  }
}

/** Codes by which brokers refuse a publisher whose name another one has taken over; which one depends on the request. */
const TAKEN_OVER = new Set(['INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED', 'INVALID_PRODUCER_ID_MAPPING']);

/** Whether an atomic publisher failed because a later one of its name has taken over. Clients may put the code into a cause. */
export function isTakenOver(fault: unknown): boolean {
  for (let each = fault; each instanceof Error; each = each.cause)
    if ('type' in each && TAKEN_OVER.has(String(each.type))) return true;
  return false;
}
