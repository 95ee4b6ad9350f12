import { openRedisWatermarks } from '@playline/chain/redis';
import type { RedisDatabase } from '@playline/testkit';

export interface WatermarkWatch {
  readonly losses: number;
  read(partition: number): Promise<number | null>;
  /** Returns the greatest watermark that any process may have read. */
  readGreatest(partition: number): Promise<number>;
  lose(): Promise<void>;
  close(): Promise<void>;
}

const KEY = 'chain:watermark';

export async function openWatermarkWatch({ url, client }: RedisDatabase): Promise<WatermarkWatch> {
  const watermarks = await openRedisWatermarks({ url });
  const lost = new Map<number, number>();
  let losses = 0;
  let pendingLoss = Promise.resolve();
  const remove = async () => {
    losses++;
    const [[, found] = []] = (await client.multi().hgetall(KEY).del(KEY).exec()) ?? [];
    for (const [partition, us] of Object.entries(found as Record<string, string>))
      lost.set(Number(partition), Math.max(Number(us), lost.get(Number(partition)) ?? 0));
  };
  return {
    get losses() {
      return losses;
    },
    read: watermarks.read,
    async readGreatest(partition) {
      const now = (await watermarks.read(partition)) ?? 0;
      // Waits for a running `lose`, which records the watermarks that it removes.
      await pendingLoss;
      return Math.max(now, lost.get(partition) ?? 0);
    },
    lose: () => {
      pendingLoss = remove();
      return pendingLoss;
    },
    close: watermarks.close,
  };
}
