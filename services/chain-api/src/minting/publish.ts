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
import type { Tracing } from '@playline/runtime';
import {
  type LogBounds,
  type LogReader,
  type OutgoingRecord,
  type Producer,
  type SchemaRegistry,
  sendAll,
  toTraceHeaders,
} from '@playline/stream';

export interface MintTopicsParts {
  readonly producer: Pick<Producer, 'send'>;
  readonly registry: Pick<SchemaRegistry, 'idOf'>;
  readonly topicPrefix: string;
  readonly tracing: Pick<Tracing, 'find'> | null;
}

/** Both methods resolve after all in-sync replicas have stored the records. */
export interface MintTopics {
  publishRequests(records: readonly MintRequestRecord[]): Promise<void>;
  publishMetadata(records: readonly ChainMetadataRecord[]): Promise<void>;
}

export const mintTopicNames = (topicPrefix: string): string[] =>
  [TOPICS.mintRequests, TOPICS.chainMetadata].map(({ name }) => topicPrefix + name);

export function createMintTopics({ producer, registry, topicPrefix, tracing }: MintTopicsParts): MintTopics {
  const createPublish = <T extends { readonly traceId: string }>(
    name: string,
    codec: RecordCodec<T>,
    keyOf: (record: T) => string,
  ) => {
    const topic = topicPrefix + name;
    return async (records: readonly T[]): Promise<void> => {
      const schemaId = await registry.idOf(schemaSubjectOf(topic), codec.schema);
      const outgoing: OutgoingRecord[] = records.map((record) => {
        const value = frameRecord(schemaId, codec.encode(record));
        return { topic, key: Buffer.from(keyOf(record)), value, headers: toTraceHeaders(tracing, record) };
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
  /** Offsets applied to the claims, keyed by `topic/partition`. */
  readonly readOffsets: () => Promise<ReadonlyMap<string, number>>;
  readonly topicPrefix: string;
  readonly monotonicMs?: () => number;
}

/** Short compared to `CLAIM_LAPSE_MS`, the age at which a claim is checked. */
const ENDS_TTL_MS = 10_000;

/**
 * Returns true if the claims reflect all requests up to a recent end of the log. Checks every partition, because adding
 * partitions reassigns signers. End offsets are cached, because the applied offset of a busy log never reaches its end.
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
    if (cached === null || nowMs - cached.atMs > ENDS_TTL_MS) {
      const ends = await log.bounds(topic, { readUncommitted: true });
      if (ends.length === 0) throw new Error(`The topic ${topic} does not exist.`);
      cached = { atMs: nowMs, ends };
    }
    const { ends } = cached;
    const applied = await readOffsets();
    return ends.every(({ partition, end }) => (applied.get(`${topic}/${partition}`) ?? -1) >= end);
  };
}
