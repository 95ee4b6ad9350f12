/** What a source brings, in lists of `sizeMax`: as much as one call of a store should take. The last may be shorter. */
export async function* inBatches<T>(source: AsyncIterable<T>, sizeMax: number): AsyncGenerator<T[]> {
  let batch: T[] = [];
  for await (const each of source) {
    batch.push(each);
    if (batch.length < sizeMax) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
