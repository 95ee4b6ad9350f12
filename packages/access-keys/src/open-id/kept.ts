/**
 * Builds what asks for something and keeps it for a while. Whoever asks meanwhile waits for the same question; one that failed
 * is asked again by whoever comes next.
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
