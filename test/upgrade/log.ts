import { FRAME_BYTES, schemaIdOf, TOPICS, type Topic } from '@playline/contracts';
import { deadLetterTopicOf } from '@playline/stream';
import { createSchemaRegistry, readTopic } from '@playline/stream/kafka';
import { testStores } from '@playline/testkit';
import avro from 'avsc';

// This test writes to neither topic: the portal writes audit records, and signable keys require the signer's key.
const UNUSED_TOPICS: readonly string[] = [TOPICS.audit.name, TOPICS.signableKeys.name];

/** Topics with a schema, except for `UNUSED_TOPICS` and the chain topics, of which only one is used. */
export const RECORD_TOPICS: readonly Topic[] = [
  TOPICS.activities,
  ...Object.values<Topic>(TOPICS).filter(
    ({ name, schema }) => schema !== null && !name.startsWith('chain.') && !UNUSED_TOPICS.includes(name),
  ),
];

const read = (prefix: string, { name }: Pick<Topic, 'name'>) =>
  readTopic({ brokers: testStores().kafka, topic: prefix + name });

export async function readDeadReasons(prefix: string): Promise<string[]> {
  const reasons: string[] = [];
  for (const topic of Object.values<Topic>(TOPICS).filter(({ schema }) => schema !== null))
    for (const { headers } of await read(prefix, { name: deadLetterTopicOf(topic.name) }))
      reasons.push(`${topic.name}: ${String(headers.reason)}`);
  return reasons;
}

/** A record, decoded with the schema whose id it contains. `error` is set if decoding failed. */
export interface LoggedRecord {
  readonly schemaId: number;
  readonly fields: readonly string[];
  readonly record: Record<string, unknown> | null;
  readonly error: string | null;
}

export async function readRecords(prefix: string, topic: Topic): Promise<LoggedRecord[]> {
  const { schemaOf } = createSchemaRegistry({ url: testStores().registry });
  const types = new Map<number, avro.Type>();
  const typeOf = async (id: number) => {
    const known = types.get(id);
    if (known !== undefined) return known;
    const type = avro.Type.forSchema(JSON.parse((await schemaOf(id))!), { wrapUnions: 'never' });
    types.set(id, type);
    return type;
  };
  const records: LoggedRecord[] = [];
  for (const { value } of await read(prefix, topic)) {
    // Activity writers publish ticks without a value.
    if (value === null) continue;
    const schemaId = schemaIdOf(value)!;
    const type = (await typeOf(schemaId)) as avro.types.RecordType;
    const fields = type.fields.map(({ name }) => name);
    try {
      const record = type.fromBuffer(value.subarray(FRAME_BYTES)) as Record<string, unknown>;
      records.push({ schemaId, fields, record, error: null });
    } catch (error) {
      records.push({ schemaId, fields, record: null, error: String(error) });
    }
  }
  return records;
}
