import {
  type ChainMetadataRecord,
  chainMetadataCodec,
  frameRecord,
  type MintRequestRecord,
  mintRequestCodec,
  type RecordCodec,
  schemaSubjectOf,
  TOPICS,
  toHexText,
  toSignerKey,
} from '@playline/contracts';
import { type OutgoingRecord, type Producer, type SchemaRegistry, sendAll } from '@playline/stream';

/** The part of the request log that is needed: its ends. */
export interface RequestLog {
  bounds(
    topic: string,
    options?: { readonly readUncommitted?: boolean },
  ): Promise<readonly { readonly partition: number; readonly end: number }[]>;
}

export interface MintTopicsParts {
  readonly producer: Pick<Producer, 'send'>;
  readonly registry: Pick<SchemaRegistry, 'idOf'>;
  readonly topicPrefix: string;
}

/** The two writers to the log. Each resolves when every in-sync replica has all records. */
export interface MintTopics {
  publishRequests(records: readonly MintRequestRecord[]): Promise<void>;
  publishMetadata(records: readonly ChainMetadataRecord[]): Promise<void>;
}

/** Topics written here, as named on the broker. */
export const mintTopicNames = (topicPrefix: string): string[] =>
  [TOPICS.mintRequests, TOPICS.chainMetadata].map(({ name }) => topicPrefix + name);

export function createMintTopics({ producer, registry, topicPrefix }: MintTopicsParts): MintTopics {
  const createPublish = <T>(name: string, codec: RecordCodec<T>, keyOf: (record: T) => string) => {
    const topic = topicPrefix + name;
    return async (records: readonly T[]): Promise<void> => {
      const schemaId = await registry.idOf(schemaSubjectOf(topic), codec.schema);
      const outgoing: OutgoingRecord[] = records.map((record) => {
        return { topic, key: Buffer.from(keyOf(record)), value: frameRecord(schemaId, codec.encode(record)) };
      });
      await sendAll(producer, outgoing);
    };
  };
  return {
    publishRequests: createPublish(TOPICS.mintRequests.name, mintRequestCodec, toSignerKey),
    publishMetadata: createPublish(
      TOPICS.chainMetadata.name,
      chainMetadataCodec,
      ({ chain, contractAddress }) => `${chain}:${toHexText(contractAddress)}`,
    ),
  };
}

export interface LogAppliedOptions {
  readonly log: RequestLog;
  /** How far the log has been read into the claims, by `topic/partition`. */
  readonly readOffsets: () => Promise<ReadonlyMap<string, number>>;
  readonly topicPrefix: string;
  /** Milliseconds of a clock that only goes forward. */
  readonly monotonicMs?: () => number;
}

/**
 * How long the read ends of the log are used. A question is about a claim that is a minute old (`CLAIM_LAPSE_MS`), and
 * producers give up after a third of that. So ends read ten seconds ago are after any record of that claim.
 */
const ENDS_GOOD_MS = 10_000;

/**
 * Builds the question whether all records of requests of a minute ago were read into the claims. It checks all
 * partitions, not only the signer's: when an operator adds partitions, a signer's key maps to another one, and earlier
 * records stay where they are. The ends include records of open transactions. They are used for a while, because a log
 * with constant writes is never read to its present end.
 */
export function createIsLogApplied({
  log,
  readOffsets: places,
  topicPrefix,
  monotonicMs = () => performance.now(),
}: LogAppliedOptions): () => Promise<boolean> {
  const topic = topicPrefix + TOPICS.mintRequests.name;
  let asked: { readonly atMs: number; readonly ends: Awaited<ReturnType<RequestLog['bounds']>> } | null = null;
  return async () => {
    const nowMs = monotonicMs();
    if (asked === null || nowMs - asked.atMs > ENDS_GOOD_MS) {
      const ends = await log.bounds(topic, { readUncommitted: true });
      if (ends.length === 0) throw new Error(`there is no topic ${topic}`);
      asked = { atMs: nowMs, ends };
    }
    const { ends } = asked;
    const brought = await places();
    return ends.every(({ partition, end }) => (brought.get(`${topic}/${partition}`) ?? -1) >= end);
  };
}
