import { setTimeout as delay } from 'node:timers/promises';

/** Waits between two questions. @throws the reason of the signal, at once */
export async function rest(ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await delay(ms, undefined, signal && { signal }).catch(() => signal?.throwIfAborted());
}
