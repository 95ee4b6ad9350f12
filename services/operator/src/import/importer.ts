import { randomBytes } from 'node:crypto';
import type { ChainStore } from '@playline/chain';
import { createRecordReader, frameRecord } from '@playline/contracts';
import { type LogReader, type Producer, sendAll } from '@playline/stream';
import { awaitWritable, type Schemas } from '../await-schema.ts';
import { awaitLog, awaitStore } from '../await-store.ts';
import { unconfirmed } from '../command.ts';
import { findTail } from '../rebuild/log-tail.ts';
import type { LogSources } from '../writable-log.ts';
import { type Imported, type ImportOptions, importLines } from './import-lines.ts';
import type { ImportedRow, ImportSubject } from './subjects.ts';

/** What imports work with. */
export interface ImportSources extends LogSources {
  /** @param topic full name on the broker */
  readonly openProducer: (topic: string) => Promise<Producer>;
  readonly openStore: () => Promise<ChainStore>;
}

export interface ImporterOptions extends ImportSources {
  /** Consumer group of the activity writer. */
  readonly writerGroup: string;
  readonly onProgress: (line: string) => void;
}

/** Lines to import, and callbacks for what is done with them. */
export interface ImportJob<R, Row extends ImportedRow>
  extends Pick<ImportOptions<R, Row>, 'lines' | 'tail' | 'onRefused' | 'onProgress' | 'stop'> {
  /** Name of the chain that all lines must be about; null: any. */
  readonly chain: string | null;
}

/** Imports lines into one topic; can be used repeatedly. */
export interface Importer<R, Row extends ImportedRow> {
  /** What the writer has still to write, by name. Lines are compared with it and then with the tables. */
  readTail(): Promise<Map<string, Row[]>>;
  /** @throws UnreachableError when it is unknown whether the brokers have what was published */
  import(job: ImportJob<R, Row>): Promise<Imported>;
  close(): Promise<void>;
}

/** @throws UnreachableError when a store does not answer, or the schema is not registered */
export async function openImporter<R, Row extends ImportedRow>(
  subject: ImportSubject<R, Row>,
  { openLog, openProducer, openStore, schemas, topicPrefix, writerGroup, onProgress }: ImporterOptions,
): Promise<Importer<R, Row>> {
  const producer = await openProducer(topicPrefix + subject.topic.name);
  const log = await openImportLog({
    subject,
    producer,
    schemas,
    topicPrefix,
    writerGroup,
    onProgress,
    log: await openLog(),
  });
  const store = await openStore();
  const close = async () => void (await Promise.all([log.close(), store.close()]));
  try {
    await awaitStore('ClickHouse', () => store.ready());
  } catch (fault) {
    await close();
    throw fault;
  }
  return {
    readTail: log.readTail,
    import: ({ chain, ...job }) =>
      importLines({
        subject,
        ...job,
        parse: subject.createParse({ chain, traceId: randomBytes(16).toString('hex') }),
        readStored: (rows) => subject.readStored(store, rows),
        publish: log.publish,
      }),
    close,
  };
}

/** What an import needs of Kafka and of the registry. */
interface ImportLogSource<R, Row extends ImportedRow> {
  readonly subject: ImportSubject<R, Row>;
  readonly producer: Producer;
  readonly log: LogReader;
  readonly schemas: Schemas;
  /** TOPIC_PREFIX */
  readonly topicPrefix: string;
  /** Consumer group of the activity writer: everything that it has committed is in the tables. */
  readonly writerGroup: string;
  readonly onProgress: (line: string) => void;
}

/** The target of an import, and what is still on its way to the tables. */
interface ImportLog<R, Row> {
  /** Resolves when the brokers have all of them. @throws UnreachableError when that is unknown */
  publish(records: readonly R[]): Promise<void>;
  /** What the writer has still to write, by name, in the order of the log. Read the tables afterwards. */
  readTail(): Promise<Map<string, Row[]>>;
  close(): Promise<void>;
}

/**
 * The log over a producer and a reader, which it closes.
 * @throws UnreachableError when brokers or registry do not answer, or the schema is not registered
 */
async function openImportLog<R, Row extends ImportedRow>(source: ImportLogSource<R, Row>): Promise<ImportLog<R, Row>> {
  const { subject, producer, log, schemas, topicPrefix } = source;
  const topic = topicPrefix + subject.topic.name;
  const close = async () => void (await Promise.all([producer.close(), log.close()]));
  try {
    const [schemaId] = await Promise.all([
      awaitWritable({ producer, schemas }, topic, subject.codec.schema),
      awaitLog(log),
    ]);
    return {
      close,
      readTail: () => readTail(source),
      publish: async (records) =>
        sendAll(
          producer,
          records.map((record) => ({
            topic,
            key: subject.keyOf(subject.toRow(record)),
            value: frameRecord(schemaId, subject.codec.encode(record)),
          })),
        ).catch(unconfirmed('what was published', 'run it again, and what stands is not published twice')),
    };
  } catch (fault) {
    await close();
    throw fault;
  }
}

/** Ticks are no versions, nor are records that the writer would make dead letters of. */
async function readTail<R, Row extends ImportedRow>(source: ImportLogSource<R, Row>): Promise<Map<string, Row[]>> {
  const { subject, log, schemas } = source;
  const { topic, bounds } = await findTail(source, [subject.topic, subject.codec]);
  const readValue = createRecordReader({ schemaOf: schemas.schemaOf, createReader: subject.codec.decoderOf });
  const tail = new Map<string, Row[]>();
  for (const { partition, start, end } of bounds)
    for await (const { value } of log.read({ topic, partition, start, end })) {
      const read = value === null ? null : await readValue(value);
      const row = read?.kind === 'record' ? toRow(subject, read.record) : null;
      if (row === null) continue;
      const name = subject.nameOf(row);
      const versions = tail.get(name);
      if (versions === undefined) tail.set(name, [row]);
      else versions.push(row);
    }
  return tail;
}

function toRow<R, Row extends ImportedRow>(subject: ImportSubject<R, Row>, record: R): Row | null {
  try {
    return subject.toRow(record);
  } catch (fault) {
    if (fault instanceof RangeError) return null;
    throw fault;
  }
}
