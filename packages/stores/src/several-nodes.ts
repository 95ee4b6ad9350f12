/** Calls to several nodes of a store. */

/** Waits for all calls, so that none is running when a fault propagates. @throws the first fault */
export async function settleAll<T>(calls: readonly Promise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(calls);
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  return results.map((result) => (result as PromiseFulfilledResult<T>).value);
}

/** Returns the result of each call, or null if its node does not respond. @throws if no node responds */
export async function settleSome<T>(calls: readonly Promise<T>[]): Promise<(T | null)[]> {
  const results = await Promise.allSettled(calls);
  if (results.every(({ status }) => status === 'rejected')) throw (results[0] as PromiseRejectedResult).reason;
  return results.map((result) => (result.status === 'fulfilled' ? result.value : null));
}

/** Returns the lowest number of each name that all maps contain. */
export function toLowest<K>(maps: readonly ReadonlyMap<K, number>[]): Map<K, number> {
  const [first, ...others] = maps;
  const lowest = new Map<K, number>();
  for (const [name, number] of first ?? []) {
    if (!others.every((each) => each.has(name))) continue;
    lowest.set(
      name,
      others.reduce((least, each) => Math.min(least, each.get(name)!), number),
    );
  }
  return lowest;
}
