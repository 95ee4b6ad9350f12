import { type LogReader, RetryableFault, toPartition } from '@playline/stream';

/**
 * Creates the question which partition of a topic a chain's key chooses. How many there are is asked once: a topic that is
 * given more of them would have chains in two.
 * @throws RetryableFault while brokers do not tell, or have no such topic
 */
export function createChainPartitions(log: Pick<LogReader, 'bounds'>, topic: string) {
  let count: number | null = null;
  const chosen = new Map<string, number>();
  const ask = async (): Promise<number> => {
    const bounds = await log.bounds(topic).catch((cause: unknown) => {
      throw new RetryableFault(`nobody tells how many partitions ${topic} has`, { cause });
    });
    if (bounds.length === 0) throw new RetryableFault(`there is no topic ${topic}`);
    return bounds.length;
  };
  return async (chain: string): Promise<number> => {
    count ??= await ask();
    const known = chosen.get(chain);
    if (known !== undefined) return known;
    const partition = toPartition(Buffer.from(chain), count);
    chosen.set(chain, partition);
    return partition;
  };
}
