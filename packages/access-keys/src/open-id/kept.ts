/**
 * Caches what `ask` returns for a while. Callers that come while it runs share the same call. A call that failed is not
 * cached: the next caller asks again.
 */
export function createKept<T>(ask: () => Promise<T>, keptMs: number): () => Promise<T> {
  let kept: Promise<T> | null = null;
  let askedAt = 0;
  return () => {
    if (kept !== null && performance.now() < askedAt + keptMs) return kept;
    const asked = ask();
    [kept, askedAt] = [asked, performance.now()];
    asked.catch(() => {
      if (kept === asked) kept = null;
    });
    return asked;
  };
}
