/**
 * Reads something for everybody who asks: one reading at a time, and what it brought counts for a while. A reading that failed
 * is told to all who waited for it, and the next one asks again.
 * @param keepMs how long an answer counts, in milliseconds
 */
export function createShared<T>(read: () => Promise<T>, keepMs: number): () => Promise<T> {
  let reading: Promise<T> | null = null;
  let last: { readonly value: T; readonly readAt: number } | null = null;
  return async () => {
    if (last !== null && performance.now() - last.readAt < keepMs) return last.value;
    reading ??= read()
      .then((value) => {
        last = { value, readAt: performance.now() };
        return value;
      })
      .finally(() => {
        reading = null;
      });
    return reading;
  };
}
