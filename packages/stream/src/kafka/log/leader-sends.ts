import { toPartition } from '@playline/stores';
import type { ICustomPartitioner } from 'kafkajs';
import type { TransactionRecord } from '../../log.ts';

type Destination = Pick<TransactionRecord, 'topic' | 'key' | 'partition'>;

interface PartitionLeader {
  readonly partitionId: number;
  readonly leader: number;
}

/** The leader of a partition whose topic was not sent to before. */
const UNKNOWN = -2;

/** Thrown by the partitioner if a message belongs to another leader than the rest of its send. */
class LeaderMoved extends Error {}

/**
 * Selects records of one leader per send. After a failed send to several leaders, kafkajs 2.2.4 would omit partitions that
 * moved to a leader that has responded, and repeat records of a leader that has not responded yet.
 */
export class LeaderSends {
  readonly #topics = new Map<string, readonly PartitionLeader[]>();
  #leader = Number.NaN;

  /** Sends a message to its `partition`, or to the partition of its key. @throws LeaderMoved */
  readonly createPartitioner =
    () =>
    ({ topic, message, partitionMetadata }: Parameters<ReturnType<ICustomPartitioner>>[0]): number => {
      this.#topics.set(topic, partitionMetadata);
      const destination = { ...message, topic } as Destination;
      if (this.#leaderOf(destination) !== this.#leader) throw new LeaderMoved();
      return this.#partitionOf(destination);
    };

  /** Calls `send` with the records of each leader. */
  async sendAll<R extends Destination>(records: readonly R[], send: (records: R[]) => Promise<unknown>): Promise<void> {
    let remaining = records;
    while (remaining.length > 0) {
      const leader = this.#leaderOf(remaining[0]!);
      this.#leader = leader;
      const group = Map.groupBy(remaining, (record) => this.#leaderOf(record) === leader);
      try {
        await send(group.get(true)!);
      } catch (error) {
        if (error instanceof LeaderMoved) continue;
        throw error;
      }
      remaining = group.get(false) ?? [];
    }
  }

  #partitionOf({ topic, key, partition }: Destination): number {
    return partition ?? (key === null ? 0 : toPartition(key, this.#topics.get(topic)?.length ?? 1));
  }

  #leaderOf(at: Destination): number {
    const partition = this.#partitionOf(at);
    return this.#topics.get(at.topic)?.find(({ partitionId }) => partitionId === partition)?.leader ?? UNKNOWN;
  }
}
