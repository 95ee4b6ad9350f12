/**
 * Waits for work, but no longer than a bound. The work itself continues after the bound, and its result is ignored then.
 * @param late called when the bound is over: what it returns is the answer, what it throws is thrown
 * @throws what the work throws within the bound
 */
export async function waitAtMost<T, L>(boundMs: number, work: Promise<T>, late: () => L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const bound = new Promise<void>((resolve) => {
    // A process that has nothing else to do need not live on for a bound.
    timer = setTimeout(resolve, boundMs).unref();
  }).then(late);
  try {
    return await Promise.race([work, bound]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Waits for the answer of a store, but no longer than a bound. The call itself continues after it.
 * @throws Error that names the bound when it is over; before that, what the call throws
 */
export function answerWithin<T>(boundMs: number, call: Promise<T>): Promise<T> {
  return waitAtMost(boundMs, call, (): never => {
    throw new Error(`no answer within ${boundMs} ms`);
  });
}

/** Waits that long, or until the signal is aborted. Does not throw: the caller checks the signal. */
export function pause(ms: number, stop?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      stop?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, Math.max(0, ms));
    stop?.addEventListener('abort', end);
    if (stop?.aborted === true) end();
  });
}

/** Waits so long. @throws the reason of the signal, at once */
export async function pauseOrThrow(ms: number, stop?: AbortSignal): Promise<void> {
  await pause(ms, stop);
  stop?.throwIfAborted();
}
