import { setTimeout as delay } from 'node:timers/promises';

/** Longest time that is sent what should be refused. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 25;

/** Requests with one key, sent one after the other until one is refused. */
export interface RefusedLoad {
  /** When a request with it was last answered 200, by `performance.now`; 0 before the first. */
  takenAt(): number;
  /** Resolves when one is refused. Rejects when there was any other answer, or no refusal within a minute. */
  readonly refused: Promise<void>;
}

/**
 * Sends requests at an even pace of at most 40 a second, so that a key stays cached while it is revoked.
 * @param send gives the status of one request
 * @param refusal the status of a refused one
 */
export function sendUntilRefused(send: () => Promise<number>, refusal: number): RefusedLoad {
  let takenAt = 0;
  const statuses = new Set<number>();
  const run = async () => {
    const end = performance.now() + PATIENCE_MS;
    do {
      const status = await send();
      statuses.add(status);
      if (status === 200) takenAt = performance.now();
      if (status === refusal) break;
      await delay(PAUSE_MS);
    } while (performance.now() < end);
    const seen = [...statuses].join(', ');
    if (seen !== `200, ${refusal}`) throw new Error(`answers were ${seen}, not 200 until the refusal by ${refusal}`);
  };
  return { takenAt: () => takenAt, refused: run() };
}
