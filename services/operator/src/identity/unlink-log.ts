import { setTimeout as delay } from 'node:timers/promises';
import {
  createRecordReader,
  frameRecord,
  type IdentityDecisionRecord,
  type IdentityLinkRecord,
  identityDecisionCodec,
  identityLinkCodec,
  TOPICS,
} from '@playline/contracts';
import { type LogReader, type Producer, sendAll } from '@playline/stream';
import { awaitSchemaId, type Schemas } from '../await-schema.ts';
import { awaitLog, awaitStore } from '../await-store.ts';
import { UnreachableError } from '../command.ts';

/** Where unlinks are requested, and their decisions read. */
export interface UnlinkLog {
  /** Resolves when the fact is acknowledged. @throws UnreachableError when it is unknown whether it was written */
  publish(fact: IdentityLinkRecord): Promise<void>;
  /** The decision about this message's fact; null when there is none in time. */
  awaitDecision(messageId: Buffer, waitMs: number): Promise<IdentityDecisionRecord | null>;
  close(): Promise<void>;
}

/** What it needs of Kafka and of the registry. */
export interface UnlinkLogSource {
  readonly producer: Producer;
  readonly log: LogReader;
  readonly schemas: Schemas;
  /** TOPIC_PREFIX */
  readonly topicPrefix: string;
}

const POLL_MS = 100;

/**
 * The log over a producer and a reader; closing closes both. Only decisions published from now on are read.
 * @throws UnreachableError when brokers or registry do not answer, or the schema is not registered: before anything is
 * published
 */
export async function openUnlinkLog(source: UnlinkLogSource): Promise<UnlinkLog> {
  const { producer, log, schemas, topicPrefix } = source;
  const [linkTopic, decisionTopic] = [TOPICS.identityLinks, TOPICS.identityDecisions].map(
    ({ name }) => topicPrefix + name,
  ) as [string, string];
  const close = async () => void (await Promise.all([producer.close(), log.close()]));
  try {
    const [schemaId] = await Promise.all([
      awaitSchemaId(schemas, linkTopic, identityLinkCodec.schema),
      awaitStore('Kafka', () => producer.ready()),
      awaitLog(log),
    ]);
    const look = await createLook(source, decisionTopic);
    return {
      close,
      async publish(fact) {
        const value = frameRecord(schemaId, identityLinkCodec.encode(fact));
        const record = { topic: linkTopic, key: Buffer.from(fact.environmentId), value };
        return sendAll(producer, [record]).catch((fault: Error) => Promise.reject(toUnconfirmed(fault)));
      },
      async awaitDecision(messageId, waitMs) {
        const endAt = performance.now() + waitMs;
        for (;;) {
          const found = await look(messageId);
          if (found !== null || performance.now() > endAt) return found;
          await delay(POLL_MS);
        }
      },
    };
  } catch (fault) {
    await close();
    throw fault;
  }
}

/** Creates the function that returns the decisions added since its last call. */
async function createLook({ log, schemas }: UnlinkLogSource, topic: string) {
  const next = new Map((await log.bounds(topic)).map(({ partition, end }) => [partition, end]));
  const readValue = createRecordReader({
    schemaOf: schemas.schemaOf,
    createReader: identityDecisionCodec.decoderOf,
  });
  return async (messageId: Buffer): Promise<IdentityDecisionRecord | null> => {
    for (const { partition, end } of await log.bounds(topic)) {
      for await (const { value } of log.read({ topic, partition, start: next.get(partition) ?? 0, end })) {
        const read = await readValue(value);
        if (read.kind === 'record' && read.record.messageId.equals(messageId)) return read.record;
      }
      next.set(partition, end);
    }
    return null;
  };
}

/** The fact may still be in the log, and be decided. */
function toUnconfirmed({ message }: Error): UnreachableError {
  return new UnreachableError(
    `Kafka did not confirm the unlink (${message}): identity members tells whether it was done; to ask again is safe`,
  );
}
