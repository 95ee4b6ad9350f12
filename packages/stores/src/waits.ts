/**
 * Waits for work within a bound. The work itself continues after it, and its result is ignored.
 * @param late called after the bound; its result or fault is that of the call
 */
export async function waitAtMost<T, L>(boundMs: number, work: Promise<T>, late: () => L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const bound = new Promise<void>((resolve) => {
    // A bound alone must not keep a process alive.
    timer = setTimeout(resolve, boundMs).unref();
  }).then(late);
  try {
    return await Promise.race([work, bound]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits for the response of a store within a bound. @throws Error that names the bound */
export function answerWithin<T>(boundMs: number, call: Promise<T>): Promise<T> {
  return waitAtMost(boundMs, call, (): never => {
    throw new Error(`no answer within ${boundMs} ms`);
  });
}

/** Waits, or until the signal is aborted. Does not throw. */
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

/** Waits. @throws the reason of the signal when it is aborted */
export async function pauseOrThrow(ms: number, stop?: AbortSignal): Promise<void> {
  await pause(ms, stop);
  stop?.throwIfAborted();
}
