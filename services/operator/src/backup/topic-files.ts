/** Copies records that no table contains to files, and publishes them to a new log. */
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { FRAME_BYTES, schemaSubjectOf, TOPICS, type Topic } from '@playline/contracts';
import { auditGroupOf, GROUPS, parkedGroupOf } from '@playline/runtime';
import { inBatches } from '@playline/stores';
import type { LogBounds, LogReader, Producer, PublishedRecord, StreamRecord } from '@playline/stream';
import { withStore } from '../await-store.ts';
import type { Backup, Content, NewBackup } from './backup-store.ts';
import type { BackedUpCommit, BackedUpTopic } from './manifest.ts';
import { assertUnchanged, createFileSum } from './native-files.ts';

interface CopiedTopic {
  readonly topic: Topic;
  /** Group that stores the records in tables: only records after its commits are copied. Null to copy all records. */
  readonly storedBy: string | null;
}

const whole = (...topics: readonly Topic[]): CopiedTopic[] => topics.map((topic) => ({ topic, storedBy: null }));
const tailOf = (storedBy: string, ...topics: readonly Topic[]): CopiedTopic[] =>
  topics.map((topic) => ({ topic, storedBy }));

/**
 * Progress before the records that it covers, so that the copies contain all records that the copied progress covers:
 * indexed blocks before their activities, mint states before their requests.
 */
const COPIED_TOPICS: readonly CopiedTopic[] = [
  ...whole(TOPICS.projects, TOPICS.accessKeys, TOPICS.rateLimitKeys, TOPICS.collections, TOPICS.accounts),
  ...whole(TOPICS.signableKeys, TOPICS.indexProgress, TOPICS.tokens),
  ...whole(TOPICS.mintStates, TOPICS.mintTransactions, TOPICS.mintRequests),
  ...tailOf(auditGroupOf(GROUPS.writer), TOPICS.audit),
  ...tailOf(GROUPS.linker, TOPICS.identityLinks),
  ...tailOf(parkedGroupOf(GROUPS.linker), TOPICS.parkedLinks),
  ...tailOf(GROUPS.writer, TOPICS.identityDecisions, TOPICS.messages, TOPICS.consents, TOPICS.rejections),
  ...tailOf(GROUPS.activityWriter, TOPICS.activities, TOPICS.chainMetadata),
  ...tailOf(GROUPS.eraser, TOPICS.erasures),
];

/** A line of a topic file: partition, offset, key, value, headers. Bytes are Base64. */
type Line = readonly [
  partition: number,
  offset: number,
  key: string | null,
  value: string | null,
  headers: [string, string][],
];

const toText = (bytes: Buffer | null) => (bytes === null ? null : bytes.toString('base64'));
const toBytes = (text: string | null) => (text === null ? null : Buffer.from(text, 'base64'));

export interface CopyTopicsOptions {
  readonly log: LogReader;
  readonly topicPrefix: string;
  readonly commits: readonly BackedUpCommit[];
  readonly backup: NewBackup;
  /** Called with the schema id of each copied record. */
  readonly onSchema: (id: number, subject: string) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Copies the topics. Call this after the tables are copied, so that a record is in a table or in a file. */
export async function copyTopics(options: CopyTopicsOptions): Promise<BackedUpTopic[]> {
  const copied: BackedUpTopic[] = [];
  for (const each of COPIED_TOPICS) copied.push(await copyTopic(options, each));
  return copied;
}

async function copyTopic(options: CopyTopicsOptions, copied: CopiedTopic): Promise<BackedUpTopic> {
  const [{ topic }, { backup, signal }] = [copied, options];
  const bounds = await options.log.bounds(options.topicPrefix + topic.name);
  const file = backup.toFile(`${topic.name}.jsonl.gz`);
  const [sum, count] = [createFileSum(), { records: 0 }];
  const lines = toLines(options, copied, { bounds, count });
  const write = (content: Content) => backup.write(file, content);
  await pipeline(lines, createGzip(), sum.stream, write, { signal });
  const partitions = bounds.length;
  return { topic: topic.name, partitions, ends: bounds.map(({ end }) => end), ...count, file, ...sum.read() };
}

async function* toLines(
  { log, topicPrefix, commits, onSchema }: CopyTopicsOptions,
  { topic, storedBy }: CopiedTopic,
  { bounds, count }: { bounds: readonly LogBounds[]; count: { records: number } },
): AsyncGenerator<string> {
  for (const { partition, start, end } of bounds) {
    const commit = commits.find(
      (each) => each.group === storedBy && each.topic === topic.name && each.partition === partition,
    );
    const from = Math.max(start, commit?.committed ?? 0);
    const name = topicPrefix + topic.name;
    for await (const record of log.read({ topic: name, partition, start: from, end, isWhole: true })) {
      const id = schemaIdOf(record.value);
      if (id !== null) await onSchema(id, subjectOf(topic, topicPrefix));
      count.records++;
      yield `${JSON.stringify(toLine(record))}\n`;
    }
  }
}

function toLine({ partition, offset, key, value, headers }: StreamRecord): Line {
  const pairs = Object.entries(headers).flatMap(([name, header]): [string, string][] =>
    header === undefined ? [] : [[name, Buffer.from(header as Buffer).toString('base64')]],
  );
  return [partition, offset, toText(key), toText(value), pairs];
}

/** Parked facts are copies of records of the link topic. */
const subjectOf = ({ name }: Topic, prefix: string) =>
  schemaSubjectOf(prefix + (name === TOPICS.parkedLinks.name ? TOPICS.identityLinks.name : name));

function schemaIdOf(value: Buffer | null): number | null {
  return value !== null && value.length >= FRAME_BYTES && value[0] === 0 ? value.readUInt32BE(1) : null;
}

/** Records that the producer may hold at a time. */
const BATCH_RECORDS = 500;
/** Names the copied record, so that a repeated restore publishes no record twice. */
const HEADER = 'restored-from';

export interface PublishOptions {
  readonly log: LogReader;
  readonly openProducer: (topic: string) => Promise<Producer>;
  readonly topicPrefix: string;
  readonly backup: Backup;
  readonly topics: readonly BackedUpTopic[];
  /** Returns the id that the current registry has for a schema of the backup. */
  readonly toSchemaId: (id: number) => number;
  readonly onProgress: (line: string) => void;
}

/**
 * Publishes the copied records to the partitions that they were in. Can be repeated.
 * @throws Error if a file was changed, or a partition is missing
 */
export async function publishTopics(options: PublishOptions): Promise<void> {
  const { backup, topics } = options;
  // All files before the first record, because published records cannot be removed.
  for (const topic of topics) await assertUnchanged(`${backup.location}: ${topic.file}`, backup.read(topic), topic);
  for (const topic of topics) {
    if (topic.records === 0) continue;
    const name = options.topicPrefix + topic.topic;
    const published = await readPublished(options, name);
    const bounds = await options.log.bounds(name);
    if (bounds.length < topic.partitions)
      throw new Error(
        `topic ${name} has ${bounds.length} partitions, but ${topic.partitions} in the backup: add partitions`,
      );
    const records = toRecords(options, topic, published);
    // Without transactions, whose markers the readers of access records do not expect.
    await withStore('Kafka', await options.openProducer(name), async (producer) => {
      for await (const batch of inBatches(records, BATCH_RECORDS))
        await Promise.all(batch.map((record) => producer.sendForOffset(record)));
    });
    options.onProgress(`${name}: ${topic.records} records published`);
  }
}

/** Reads which copied records an interrupted restore of this backup has published. */
async function readPublished(
  { log, backup: { manifest } }: PublishOptions,
  topic: string,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (const bounds of await log.bounds(topic))
    for await (const { headers } of log.read({ topic, ...bounds })) {
      const header = headers[HEADER];
      if (header !== undefined && String(header).startsWith(`${manifest.id}/`)) found.add(String(header));
    }
  return found;
}

async function* toRecords(
  { topicPrefix, backup, toSchemaId }: PublishOptions,
  copied: BackedUpTopic,
  published: ReadonlySet<string>,
): AsyncGenerator<PublishedRecord> {
  for await (const text of readLines(backup.read(copied))) {
    const [partition, offset, key, value, pairs] = JSON.parse(text) as Line;
    const origin = `${backup.manifest.id}/${partition}/${offset}`;
    if (published.has(origin)) continue;
    const headers = Object.fromEntries(pairs.map(([name, header]) => [name, Buffer.from(header, 'base64')]));
    yield {
      topic: topicPrefix + copied.topic,
      partition,
      key: toBytes(key),
      value: withSchemaId(toBytes(value), toSchemaId),
      headers: { ...headers, [HEADER]: origin },
    };
  }
}

async function* readLines(content: Content): AsyncGenerator<string> {
  const texts = createGunzip().setEncoding('utf8');
  // An error destroys the stream, and the loop throws it.
  pipeline(content, texts).catch(() => {});
  let rest = '';
  for await (const text of texts) {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}

function withSchemaId(value: Buffer | null, toSchemaId: (id: number) => number): Buffer | null {
  const id = schemaIdOf(value);
  if (value !== null && id !== null) value.writeUInt32BE(toSchemaId(id), 1);
  return value;
}
