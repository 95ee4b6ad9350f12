/**
 * How many of each partition's waiting records are read: all while there is room for all, else as evenly as they wait, so that
 * none is left out because another one is busy.
 * @returns as many numbers, none larger than what waits, which together fill the room
 */
export function toQuotas(waiting: readonly number[], room: number): number[] {
  const quotas = waiting.map(() => 0);
  let left = room;
  // The partition with the fewest records comes first: room that it does not need goes to the next ones.
  const order = waiting.map((_, index) => index).sort((a, b) => waiting[a]! - waiting[b]!);
  for (const [at, index] of order.entries()) {
    const even = Math.floor(left / (order.length - at));
    quotas[index] = Math.min(waiting[index]!, even);
    left -= quotas[index]!;
  }
  return quotas;
}
