import { consentCodec, FRAME_BYTES, identityLinkCodec, messageRecordCodec, TOPICS } from '@playline/contracts';
import { readTopic } from '@playline/stream/kafka';
import { testStores, until } from '@playline/testkit';

const bodyOf = (value: Buffer) => value.subarray(FRAME_BYTES);

/** The message records on the log with these message ids, each with its record key. */
export async function messagesOnLog(topicPrefix: string, messageIds: readonly unknown[]) {
  const records = await readTopic({ brokers: testStores().kafka, topic: topicPrefix + TOPICS.messages.name });
  const wanted = new Set(messageIds.map(toHex));
  return records
    .map(({ key, value }) => ({
      key,
      bytes: value as Buffer,
      record: messageRecordCodec.decode(bodyOf(value as Buffer)),
    }))
    .filter(({ record }) => wanted.has(record.messageId.toString('hex')));
}

/** The link facts on the log with these message ids. */
export async function linksOnLog(topicPrefix: string, messageIds: readonly unknown[]) {
  const records = await readTopic({ brokers: testStores().kafka, topic: topicPrefix + TOPICS.identityLinks.name });
  const wanted = new Set(messageIds.map(toHex));
  return records
    .map(({ value }) => identityLinkCodec.decode(bodyOf(value as Buffer)))
    .filter(({ messageId }) => wanted.has(messageId.toString('hex')));
}

/** The consent changes on the log with this source, in log order. */
export async function consentsOnLog(topicPrefix: string, source: string) {
  const records = await readTopic({ brokers: testStores().kafka, topic: topicPrefix + TOPICS.consents.name });
  return records
    .map(({ partition, offset, value }) => ({ partition, offset, ...consentCodec.decode(bodyOf(value as Buffer)) }))
    .filter((change) => change.source === source)
    .sort((one, other) => one.offset - other.offset);
}

const toHex = (messageId: unknown) => String(messageId).replaceAll('-', '').toLowerCase();

/** Waits until a record of `topic` satisfies `isWanted`, and returns the decoded record. */
export async function findRecord<T>(
  topic: string,
  decode: (value: Buffer) => T,
  isWanted: (record: T) => boolean,
): Promise<T> {
  return await until(`${topic} has the record`, async () => {
    const records = await readTopic({ brokers: testStores().kafka, topic });
    return records.flatMap(({ value }) => (value === null ? [] : [decode(value)])).find(isWanted);
  });
}
