import type { Verdict } from './broker-faults.ts';

/** Encoded records of one partition, ready to go. */
export interface EncodedBatch {
  readonly topic: string;
  readonly partition: number;
  /** Stamped with who writes them. */
  readonly bytes: Buffer;
}

/** What the sender needs of a cluster: small, so that tests can play a cluster that loses answers. */
export interface Wire {
  /** Number of partitions, or 0 when the topic is not known yet. */
  partitionCount(topic: string): number;
  /** Node that leads the partition, or -1. */
  leaderOf(topic: string, partition: number): number;
  /** Asks the cluster again who leads what. @returns the topics that it says do not exist */
  refresh(topics: Iterable<string>): Promise<string[]>;
  /** A producer id never used before, with its first epoch. */
  newProducerId(): Promise<{ producerId: bigint; producerEpoch: number }>;
  /**
   * Sends batches to the node that leads them with acks=all; one verdict for each, in their order.
   * Never rejects: no answer is the verdict `again`, ambiguous when bytes may have left.
   */
  produce(node: number, batches: readonly EncodedBatch[]): Promise<Verdict[]>;
}
