import { type ActivityConstants, type ActivityRow, type ActivityStore, findChanged } from '@playline/chain';
import { type LogReader, RetryableFault, type StoreCalls, toPartition } from '@playline/stream';
import type { Refusal, TimedRow } from './timed-block.ts';

export interface RefuseUpdatesOptions {
  readonly store: Pick<ActivityStore, 'constantsOf'>;
  readonly calls: StoreCalls;
  /** The partition that a chain's key maps to. @throws RetryableFault while brokers do not respond */
  readonly partitionOf: (chain: string) => Promise<number>;
}

/** Ids per query: a statement of about 40 KB. */
const IDS_MAX = 1_000;

/** Member names as used in source records. */
const NAMES: Record<keyof ActivityConstants, string> = {
  chain: 'chain',
  type: 'type',
  contractAddress: 'contract address',
  indexedAt: 'indexed_at',
};

/**
 * Refuses activities that readers would miss: records outside the partition of their chain, because only its watermark
 * covers them, and updates of a constant member, which a reader may filter by.
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
      else refused.push({ timed, reason: 'not in the partition of its chain' });
    const known = await readStored(inPartition);
    for (const timed of inPartition) {
      const { row } = timed;
      const before = known.get(row.id);
      const changed = before === undefined ? [] : findChanged(before, row);
      const names = changed.map((name) => NAMES[name as keyof ActivityConstants]);
      if (changed.length === 0) known.set(row.id, row);
      else refused.push({ timed, reason: `changes ${names.join(', ')}` });
    }
    return refused;
  };
}

/**
 * Creates the function that returns the partition of a chain. Brokers are queried once for the number of
 * partitions, which never increases, because a chain would then be in two partitions.
 * @throws RetryableFault while brokers do not respond, or have no such topic
 */
export function createChainPartitions(log: Pick<LogReader, 'bounds'>, topic: string) {
  let count: number | null = null;
  const partitions = new Map<string, number>();
  const readCount = async (): Promise<number> => {
    const bounds = await log.bounds(topic).catch((cause: unknown) => {
      throw new RetryableFault(`the number of partitions of ${topic} is not known`, { cause });
    });
    if (bounds.length === 0) throw new RetryableFault(`there is no topic ${topic}`);
    return bounds.length;
  };
  return async (chain: string): Promise<number> => {
    count ??= await readCount();
    const partition = partitions.get(chain) ?? toPartition(Buffer.from(chain), count);
    partitions.set(chain, partition);
    return partition;
  };
}
