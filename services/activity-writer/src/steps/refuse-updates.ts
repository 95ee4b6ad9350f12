import { type ActivityConstants, type ActivityRow, type ActivityStore, findChanged } from '@playline/chain';
import { type LogReader, RetryableFault, type StoreCalls, toPartition } from '@playline/stream';
import type { Refusal, TimedRow } from './timed-block.ts';

export interface RefuseUpdatesOptions {
  readonly store: Pick<ActivityStore, 'constantsOf'>;
  readonly calls: StoreCalls;
  /** Returns the partition that a chain's key maps to. @throws RetryableFault while no broker responds */
  readonly partitionOf: (chain: string) => Promise<number>;
}

/** Maximum ids per query, for a statement of about 40 KB. */
const IDS_MAX = 1_000;

/** Member names in the source records. */
const NAMES: Record<keyof ActivityConstants, string> = {
  chain: 'chain',
  type: 'type',
  contractAddress: 'contract address',
  indexedAt: 'indexed_at',
};

/**
 * Rejects activities that readers would miss: records outside their chain's partition, which only that partition's
 * watermark covers, and updates of a constant member, by which readers may filter.
 */
export function createRefuseUpdates({ store, calls, partitionOf }: RefuseUpdatesOptions) {
  const readStored = async (rows: readonly TimedRow<ActivityRow>[]): Promise<Map<string, ActivityConstants>> => {
    const ids = [...new Set(rows.map(({ row }) => row.id))];
    const found = new Map<string, ActivityConstants>();
    for (let from = 0; from < ids.length; from += IDS_MAX) {
      const batch = ids.slice(from, from + IDS_MAX);
      const batchConstants = await calls.query('activity_ids', () => store.constantsOf(batch));
      for (const [id, constants] of batchConstants) found.set(id, constants);
    }
    return found;
  };
  return async (rows: readonly TimedRow<ActivityRow>[]): Promise<Refusal<ActivityRow>[]> => {
    const inPartition: TimedRow<ActivityRow>[] = [];
    const refused: Refusal<ActivityRow>[] = [];
    for (const timed of rows)
      if ((await partitionOf(timed.row.chain)) === timed.record.partition) inPartition.push(timed);
      else refused.push({ timed, reason: "not in its chain's partition" });
    const storedConstants = await readStored(inPartition);
    for (const timed of inPartition) {
      const { row } = timed;
      const before = storedConstants.get(row.id);
      const changed = before === undefined ? [] : findChanged(before, row);
      const names = changed.map((name) => NAMES[name as keyof ActivityConstants]);
      if (changed.length === 0) storedConstants.set(row.id, row);
      else refused.push({ timed, reason: `changes ${names.join(', ')}` });
    }
    return refused;
  };
}

/**
 * Creates the function that returns a chain's partition. The number of partitions is read once and must never increase,
 * because a chain would then be in two partitions.
 * @throws RetryableFault while no broker responds or the topic does not exist
 */
export function createChainPartitions(log: Pick<LogReader, 'bounds'>, topic: string) {
  let count: number | null = null;
  const partitions = new Map<string, number>();
  const readCount = async (): Promise<number> => {
    const bounds = await log.bounds(topic).catch((cause: unknown) => {
      throw new RetryableFault(`the number of partitions of ${topic} could not be read`, { cause });
    });
    if (bounds.length === 0) throw new RetryableFault(`topic ${topic} does not exist`);
    return bounds.length;
  };
  return async (chain: string): Promise<number> => {
    count ??= await readCount();
    const partition = partitions.get(chain) ?? toPartition(Buffer.from(chain), count);
    partitions.set(chain, partition);
    return partition;
  };
}
