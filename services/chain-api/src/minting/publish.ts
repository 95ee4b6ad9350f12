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
import { type OutgoingRecord, type Producer, type SchemaRegistry, sendAll, toPartition } from '@playline/stream';

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
}

/**
 * Builds the question whether everything that the log of requests of a signer may hold now was brought into the claims. The
 * end is that of everything stored: what is decided later stands in front of it already.
 */
export function createIsLogKnown({ log, places, topicPrefix }: LogKnownParts) {
  const topic = topicPrefix + TOPICS.mintRequests.name;
  return async ({ chain, signer }: { chain: string; signer: string }): Promise<boolean> => {
    const bounds = await log.bounds(topic, { undecided: true });
    if (bounds.length === 0) throw new Error(`there is no topic ${topic}`);
    const partition = toPartition(Buffer.from(`${chain}:${signer}`), bounds.length);
    const end = bounds.find((each) => each.partition === partition)?.end;
    const place = (await places()).get(`${topic}/${partition}`);
    return end !== undefined && place !== undefined && place >= end;
  };
}
