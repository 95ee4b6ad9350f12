import { setTimeout as delay } from 'node:timers/promises';
import { UnreachableError } from './command.ts';

/** Enough for a store on the same machine that starts at the same time as the command. */
const READY_MAX_MS = 10_000;
const POLL_MS = 50;

/**
 * Waits until a store that connects in the background answers.
 * @param probe resolves to true when it does; a fault counts as no
 * @throws UnreachableError when it does not answer within 10 s
 */
export async function awaitStore(name: string, probe: () => Promise<boolean>): Promise<void> {
  const endAt = performance.now() + READY_MAX_MS;
  while (!(await probe().catch(() => false))) {
    if (performance.now() > endAt)
      throw new UnreachableError(`${name} does not answer: start it (npm run up), or mend its address`);
    await delay(POLL_MS);
  }
}
