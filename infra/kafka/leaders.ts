import { setTimeout as delay } from 'node:timers/promises';
import type { Admin } from 'kafkajs';

/** Longer than a loaded broker takes to lead a few dozen new partitions. */
const LEADERS_MAX_MS = 30_000;
const LEADERS_POLL_MS = 100;

/** Waits until every partition of the topics has a leader. @throws the last fault, or one that names the wait */
export async function awaitLeaders(admin: Pick<Admin, 'fetchTopicMetadata'>, topics: string[]): Promise<void> {
  await retryWhileLeading(async () => {
    const metadata = await admin.fetchTopicMetadata({ topics });
    const led = metadata.topics.every(({ partitions }) => partitions.every(({ leader }) => leader >= 0));
    if (led) return;
    const waiting = new Error(`new topics have no leaders after ${LEADERS_MAX_MS / 1000} s`);
    throw Object.assign(waiting, { retriable: true });
  });
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
