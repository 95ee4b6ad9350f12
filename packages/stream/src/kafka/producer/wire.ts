import type { Verdict } from './broker-faults.ts';

/** Encoded records of one partition, ready to send. */
export interface EncodedBatch {
  readonly topic: string;
  readonly partition: number;
  /** Stamped with the producer's identity. */
  readonly bytes: Buffer;
  /** Nothing is sent after this time by `performance.now()`. */
  readonly attemptsUntil: number;
}

/** What the sender needs of a cluster. Small, so that tests can simulate a cluster that loses answers. */
export interface Wire {
  /** Number of partitions, or 0 when the topic is not known yet. */
  partitionCount(topic: string): number;
  /** Id of the leader of the partition, or -1. */
  leaderOf(topic: string, partition: number): number;
  /** Refreshes the metadata of topics. @returns the topics that do not exist */
  refresh(topics: Iterable<string>): Promise<string[]>;
  /** A producer id never used before, with its first epoch. */
  newProducerId(): Promise<{ producerId: bigint; producerEpoch: number }>;
  /**
   * Sends batches to their leader with acks=all. Returns one verdict for each, in order. Never rejects: without an
   * answer the verdict is `again`, ambiguous when bytes may have been sent.
   */
  produce(node: number, batches: readonly EncodedBatch[]): Promise<Verdict[]>;
}
