import { setTimeout as delay } from 'node:timers/promises';
import type { Applied } from '@playline/identity';

/** Facts that wait for an erasure go round through the topic: twice a second is often enough, and no load. */
const PARKED_WAIT_MS = 500;

/** Waits a moment when a batch was nothing but facts that must come again; ends early when the partition is taken. */
export async function paceParked(applied: readonly Applied[], signal: AbortSignal): Promise<void> {
  if (applied.length === 0 || applied.some((one) => one.kind !== 'parked')) return;
  await delay(PARKED_WAIT_MS, undefined, { signal }).catch(() => {});
}
