import { setTimeout as delay } from 'node:timers/promises';
import type { Admin, ITopicMetadata } from 'kafkajs';

/** Longer than a loaded broker takes to lead a few dozen new partitions. */
const LEADERS_MAX_MS = 30_000;
const LEADERS_POLL_MS = 100;

/** A topic whose partitions are to be served. */
export interface AwaitedTopic {
  readonly name: string;
  /** Number of partitions that must be there. */
  readonly atLeast: number;
}

/**
 * Waits until every partition of the topics is there and has a leader.
 * @returns the topics as the brokers know them
 * @throws the last fault, or one that names the wait
 */
export async function awaitLeaders(
  admin: Pick<Admin, 'fetchTopicMetadata'>,
  topics: readonly AwaitedTopic[],
): Promise<readonly ITopicMetadata[]> {
  return retryWhileLeading(async () => {
    const metadata = await admin.fetchTopicMetadata({ topics: topics.map(({ name }) => name) });
    const isLed = topics.every(({ name, atLeast }) => {
      const partitions = metadata.topics.find((topic) => topic.name === name)?.partitions ?? [];
      return partitions.length >= atLeast && partitions.every(({ leader }) => leader >= 0);
    });
    if (isLed) return metadata.topics;
    throw notYet('new partitions have no leaders');
  });
}

/**
 * Waits until the leaders answer for their partitions. They do so once they have created their logs, which takes a
 * loaded broker two seconds after the controller has named it.
 */
export async function awaitServed(admin: Pick<Admin, 'fetchTopicOffsets'>, topics: readonly string[]): Promise<void> {
  // One after the other: asked at once, the client forgets the metadata of one topic for that of another.
  for (const topic of topics) await retryWhileLeading(() => admin.fetchTopicOffsets(topic));
}

/** The fault of a question whose answer is not there yet: `retryWhileLeading` asks it again. */
export function notYet(what: string): Error {
  return Object.assign(new Error(`${what} after ${LEADERS_MAX_MS / 1000} s`), { retriable: true });
}

/**
 * Asks again while a broker does not lead its partitions yet. The controller names a leader before that broker knows
 * it. Until then the broker refuses requests for the partition, and the client gives up at the first refusal.
 * @throws permanent faults at once; temporary ones after half a minute
 */
export async function retryWhileLeading<T>(ask: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + LEADERS_MAX_MS;
  for (;;) {
    try {
      return await ask();
    } catch (fault) {
      const passes = (fault as { retriable?: boolean } | null)?.retriable === true;
      if (!passes || performance.now() >= deadline) throw fault;
    }
    await delay(LEADERS_POLL_MS);
  }
}
