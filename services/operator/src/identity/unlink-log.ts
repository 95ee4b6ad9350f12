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
import { awaitWritable, type Schemas } from '../await-schema.ts';
import { awaitLog } from '../await-store.ts';
import { unconfirmed } from '../command.ts';

/** Publishes link facts and reads their decisions. */
export interface UnlinkLog {
  /** @throws UnreachableError when it is unknown whether the fact was written */
  publish(fact: IdentityLinkRecord): Promise<void>;
  /** The decision about a message; null without one in time. */
  awaitDecision(messageId: Buffer, waitMs: number): Promise<IdentityDecisionRecord | null>;
  /** Publishes facts again, so that they are decided again. @returns how many of them the topic still has */
  publishAgain(offsets: readonly { readonly partition: number; readonly offset: number }[]): Promise<number>;
  close(): Promise<void>;
}

export interface UnlinkLogSource {
  readonly producer: Producer;
  readonly log: LogReader;
  readonly schemas: Schemas;
  readonly topicPrefix: string;
}

const POLL_MS = 100;
const NEXT = 'check with identity members whether it took effect; repeating is safe';

/**
 * Closes its producer and reader. Only decisions published from now on are read.
 * @throws UnreachableError when brokers or registry do not answer, or the schema is not registered
 */
export async function openUnlinkLog(source: UnlinkLogSource): Promise<UnlinkLog> {
  const { producer, log, schemas, topicPrefix } = source;
  const linkTopic = topicPrefix + TOPICS.identityLinks.name;
  const close = async () => void (await Promise.all([producer.close(), log.close()]));
  try {
    const [schemaId] = await Promise.all([
      awaitWritable({ producer, schemas }, linkTopic, identityLinkCodec.schema),
      awaitLog(log),
    ]);
    const readDecision = await createDecisionReader(source, topicPrefix + TOPICS.identityDecisions.name);
    return {
      close,
      async publish(fact) {
        const value = frameRecord(schemaId, identityLinkCodec.encode(fact));
        const record = { topic: linkTopic, key: Buffer.from(fact.environmentId), value };
        return sendAll(producer, [record]).catch(unconfirmed('the unlink', NEXT));
      },
      async publishAgain(offsets) {
        let published = 0;
        for (const { partition, offset: start } of offsets)
          for await (const { key, value } of log.read({ topic: linkTopic, partition, start, end: start + 1 })) {
            const record = { topic: linkTopic, key, value: value ?? Buffer.alloc(0) };
            await sendAll(producer, [record]).catch(unconfirmed('a link', NEXT));
            published++;
          }
        return published;
      },
      async awaitDecision(messageId, waitMs) {
        const endAt = performance.now() + waitMs;
        for (;;) {
          const found = await readDecision(messageId);
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

/** The function finds the decision about a message among those published since its last call. */
async function createDecisionReader({ log, schemas }: UnlinkLogSource, topic: string) {
  const next = new Map((await log.bounds(topic)).map(({ partition, end }) => [partition, end]));
  const { schemaOf } = schemas;
  const readValue = createRecordReader({ schemaOf, createReader: identityDecisionCodec.decoderOf });
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
