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
import {
  type LogBounds,
  type LogReader,
  type OutgoingRecord,
  type Producer,
  type SchemaRegistry,
  sendAll,
} from '@playline/stream';

export interface MintTopicsParts {
  readonly producer: Pick<Producer, 'send'>;
  readonly registry: Pick<SchemaRegistry, 'idOf'>;
  readonly topicPrefix: string;
}

/** Each resolves when every in-sync replica has all records. */
export interface MintTopics {
  publishRequests(records: readonly MintRequestRecord[]): Promise<void>;
  publishMetadata(records: readonly ChainMetadataRecord[]): Promise<void>;
}

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

type LogEnd = Pick<LogBounds, 'partition' | 'end'>;

export interface LogAppliedOptions {
  readonly log: { bounds(...range: Parameters<LogReader['bounds']>): Promise<readonly LogEnd[]> };
  /** Offsets applied to the claims, by `topic/partition`. */
  readonly readOffsets: () => Promise<ReadonlyMap<string, number>>;
  readonly topicPrefix: string;
  readonly monotonicMs?: () => number;
}

/** A claim is checked a minute after it was made (`CLAIM_LAPSE_MS`), when its producer has long given up. */
const ENDS_GOOD_MS = 10_000;

/**
 * Whether the claims have all requests of a minute ago. Checks all partitions, because added partitions move a
 * signer. Ends are reused for a while: a busy log is never read to its end.
 */
export function createIsLogApplied({
  log,
  readOffsets,
  topicPrefix,
  monotonicMs = () => performance.now(),
}: LogAppliedOptions): () => Promise<boolean> {
  const topic = topicPrefix + TOPICS.mintRequests.name;
  let cached: { readonly atMs: number; readonly ends: readonly LogEnd[] } | null = null;
  return async () => {
    const nowMs = monotonicMs();
    if (cached === null || nowMs - cached.atMs > ENDS_GOOD_MS) {
      const ends = await log.bounds(topic, { readUncommitted: true });
      if (ends.length === 0) throw new Error(`there is no topic ${topic}`);
      cached = { atMs: nowMs, ends };
    }
    const { ends } = cached;
    const brought = await readOffsets();
    return ends.every(({ partition, end }) => (brought.get(`${topic}/${partition}`) ?? -1) >= end);
  };
}
