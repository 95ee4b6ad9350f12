import { consentCodec, FRAME_BYTES, identityLinkCodec, messageRecordCodec, TOPICS } from '@playline/contracts';
import { readTopic } from '@playline/stream/kafka';
import { testStores, until } from '@playline/testkit';

const bodyOf = (value: Buffer) => value.subarray(FRAME_BYTES);

/** Reads the message records with these message ids from the log, with their record keys. */
export async function messagesInLog(topicPrefix: string, messageIds: readonly unknown[]) {
  const records = await readTopic({ brokers: testStores().kafka, topic: topicPrefix + TOPICS.messages.name });
  const ids = new Set(messageIds.map(toHex));
  return records
    .map(({ key, value }) => ({
      key,
      bytes: value as Buffer,
      record: messageRecordCodec.decode(bodyOf(value as Buffer)),
    }))
    .filter(({ record }) => ids.has(record.messageId.toString('hex')));
}

/** Reads the link facts with these message ids from the log. */
export async function linksInLog(topicPrefix: string, messageIds: readonly unknown[]) {
  const records = await readTopic({ brokers: testStores().kafka, topic: topicPrefix + TOPICS.identityLinks.name });
  const ids = new Set(messageIds.map(toHex));
  return records
    .map(({ value }) => identityLinkCodec.decode(bodyOf(value as Buffer)))
    .filter(({ messageId }) => ids.has(messageId.toString('hex')));
}

/** Reads the consent changes with this source from the log, in log order. */
export async function consentsInLog(topicPrefix: string, source: string) {
  const records = await readTopic({ brokers: testStores().kafka, topic: topicPrefix + TOPICS.consents.name });
  return records
    .map(({ partition, offset, value }) => ({ partition, offset, ...consentCodec.decode(bodyOf(value as Buffer)) }))
    .filter((change) => change.source === source)
    .sort((a, b) => a.offset - b.offset);
}

const toHex = (messageId: unknown) => String(messageId).replaceAll('-', '').toLowerCase();

/** Waits until `isMatch` returns true for a record of `topic`, and returns the record. */
export async function findRecord<T>(
  topic: string,
  decode: (value: Buffer) => T,
  isMatch: (record: T) => boolean,
): Promise<T> {
  return await until(`${topic} has the record`, async () => {
    const records = await readTopic({ brokers: testStores().kafka, topic });
    return records.flatMap(({ value }) => (value === null ? [] : [decode(value)])).find(isMatch);
  });
}
