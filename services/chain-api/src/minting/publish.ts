import {
  type ChainMetadataRecord,
  chainMetadataCodec,
  frameRecord,
  type MintRequestRecord,
  mintRequestCodec,
  type RecordCodec,
  TOPICS,
  toSignerKey,
} from '@playline/contracts';
import { type OutgoingRecord, type Producer, type SchemaRegistry, sendAll } from '@playline/stream';

/** The log of requests as far as its ends are asked for. */
export interface RequestLog {
  bounds(
    topic: string,
    options?: { readonly undecided?: boolean },
  ): Promise<readonly { readonly partition: number; readonly end: number }[]>;
}

export interface MintTopicsParts {
  readonly producer: Pick<Producer, 'send'>;
  readonly registry: Pick<SchemaRegistry, 'idOf'>;
  readonly topicPrefix: string;
}

/** The two ways to the log. Each resolves when every in-sync replica has all records. */
export interface MintTopics {
  publishRequests(records: readonly MintRequestRecord[]): Promise<void>;
  publishMetadata(records: readonly ChainMetadataRecord[]): Promise<void>;
}

const toAddressText = (address: Buffer) => `0x${address.toString('hex')}`;

/** What is written here, as it is called on the broker. */
export const mintTopicNames = (topicPrefix: string): string[] =>
  [TOPICS.mintRequests, TOPICS.chainMetadata].map(({ name }) => topicPrefix + name);

export function createMintTopics({ producer, registry, topicPrefix }: MintTopicsParts): MintTopics {
  const createPublish = <T>(name: string, codec: RecordCodec<T>, keyOf: (record: T) => string) => {
    const topic = topicPrefix + name;
    return async (records: readonly T[]): Promise<void> => {
      const schemaId = await registry.idOf(`${topic}-value`, codec.schema);
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
      ({ chain, contractAddress }) => `${chain}:${toAddressText(contractAddress)}`,
    ),
  };
}

export interface LogKnownParts {
  readonly log: RequestLog;
  /** How far the log was brought in, by `topic/partition`. */
  readonly places: () => Promise<ReadonlyMap<string, number>>;
  readonly topicPrefix: string;
  /** Milliseconds of a clock that only goes forward. */
  readonly monotonicMs?: () => number;
}

/**
 * For so long the ends of the log that were asked for are good. Whoever asks asks about a claim that is a minute old
 * (`CLAIM_LAPSE_MS`), and producers give up after a third of that: ends of ten seconds ago lie behind whatever became of it.
 */
const ENDS_GOOD_MS = 10_000;

/**
 * Builds the question whether everything that the log may hold of requests of a minute ago was brought into the claims. All
 * partitions are looked at, whoever signs: when an operator adds partitions, the key of a signer gives another one, and what
 * was written before stands where it stood. The ends are those of everything stored: what is decided later stands in front of
 * them already. They are kept for a while, since a log that is written to is never brought in to an end of this moment.
 */
export function createIsLogKnown({
  log,
  places,
  topicPrefix,
  monotonicMs = () => performance.now(),
}: LogKnownParts): () => Promise<boolean> {
  const topic = topicPrefix + TOPICS.mintRequests.name;
  let asked: { readonly atMs: number; readonly ends: Awaited<ReturnType<RequestLog['bounds']>> } | null = null;
  return async () => {
    const nowMs = monotonicMs();
    if (asked === null || nowMs - asked.atMs > ENDS_GOOD_MS) {
      const ends = await log.bounds(topic, { undecided: true });
      if (ends.length === 0) throw new Error(`there is no topic ${topic}`);
      asked = { atMs: nowMs, ends };
    }
    const { ends } = asked;
    const brought = await places();
    return ends.every(({ partition, end }) => (brought.get(`${topic}/${partition}`) ?? -1) >= end);
  };
}
