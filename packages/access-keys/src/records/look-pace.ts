/** Timers fire up to a millisecond early. The moment that was waited for then counts as passed. */
const EARLY_MS = 2;

/** How long to wait for the next look, in milliseconds. */
export function untilNextLook(everyMs: number, nowMs: number = performance.now()): number {
  const waitMs = everyMs - (nowMs % everyMs);
  return waitMs < EARLY_MS ? waitMs + everyMs : waitMs;
}

/** The loops that wait for the same moment. */
interface Round {
  readonly timer: NodeJS.Timeout;
  readonly waiting: Set<() => void>;
}

/** By interval. */
const rounds = new Map<number, Round>();

function openRound(everyMs: number): Round {
  const waiting = new Set<() => void>();
  const timer = setTimeout(() => {
    rounds.delete(everyMs);
    for (const resolve of waiting) resolve();
  }, untilNextLook(everyMs));
  const round = { timer, waiting };
  rounds.set(everyMs, round);
  return round;
}

/**
 * Resolves at the next look, or when the signal is aborted. All loops of a process with the same interval look at the
 * same moments, by one timer: they wake the process, and the store, once and not once each.
 */
export async function nextLook(everyMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const round = rounds.get(everyMs) ?? openRound(everyMs);
  const { promise, resolve } = Promise.withResolvers<void>();
  const leave = () => resolve();
  round.waiting.add(resolve);
  signal.addEventListener('abort', leave);
  await promise;
  signal.removeEventListener('abort', leave);
  round.waiting.delete(resolve);
  if (round.waiting.size > 0 || rounds.get(everyMs) !== round) return;
  // Nobody waits any more, so the timer must not keep the process running.
  clearTimeout(round.timer);
  rounds.delete(everyMs);
}
