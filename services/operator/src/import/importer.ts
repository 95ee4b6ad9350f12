/** Imports lines into a topic of activities or tokens. */
import { randomBytes } from 'node:crypto';
import type { ChainStore } from '@playline/chain';
import { createRecordReader, frameRecord } from '@playline/contracts';
import { type Producer, sendAll } from '@playline/stream';
import { awaitWritable } from '../await-schema.ts';
import { awaitLog, awaitStore } from '../await-store.ts';
import { unconfirmed } from '../command.ts';
import { findTail } from '../rebuild/log-tail.ts';
import type { LogSources } from '../writable-log.ts';
import { type Imported, type ImportOptions, importLines } from './import-lines.ts';
import type { ImportedRow, ImportSubject } from './subjects.ts';

export interface ImportSources extends LogSources {
  /** @param topic full name on the broker */
  readonly openProducer: (topic: string) => Promise<Producer>;
  readonly openStore: () => Promise<ChainStore>;
}

export interface ImporterOptions extends ImportSources {
  /** Consumer group of the activity writer: what it has committed is in the tables. */
  readonly writerGroup: string;
  readonly onProgress: (line: string) => void;
}

export interface ImportJob<R, Row extends ImportedRow>
  extends Pick<ImportOptions<R, Row>, 'lines' | 'tail' | 'onRefused' | 'onProgress' | 'stop'> {
  /** Lines about another chain are refused; null: none are. */
  readonly chain: string | null;
}

export interface Importer<R, Row extends ImportedRow> {
  /** Versions that the writer has not committed, by name, in log order. Read the tables afterwards. */
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
  const topic = topicPrefix + subject.topic.name;
  const opened: { close(): Promise<void> }[] = [];
  const close = async () => void (await Promise.all(opened.map((each) => each.close())));
  const open = async <S extends { close(): Promise<void> }>(opening: Promise<S>): Promise<S> => {
    const store = await opening;
    opened.push(store);
    return store;
  };
  try {
    const producer = await open(openProducer(topic));
    const log = await open(openLog());
    const [schemaId] = await Promise.all([
      awaitWritable({ producer, schemas }, topic, subject.codec.schema),
      awaitLog(log),
    ]);
    const store = await open(openStore());
    await awaitStore('ClickHouse', () => store.ready());
    const toLogged = (record: R) => ({
      topic,
      key: subject.keyOf(subject.toRow(record)),
      value: frameRecord(schemaId, subject.codec.encode(record)),
    });
    const next = 'run the command again; it publishes nothing twice';
    return {
      close,
      readTail: () => readTail(subject, { log, schemas, topicPrefix, writerGroup, onProgress }),
      import: ({ chain, ...job }) =>
        importLines({
          subject,
          ...job,
          parse: subject.createParse({ chain, traceId: randomBytes(16).toString('hex') }),
          readStored: (rows) => subject.readStored(store, rows),
          publish: async (records) =>
            sendAll(producer, records.map(toLogged)).catch(unconfirmed('what was published', next)),
        }),
    };
  } catch (fault) {
    await close();
    throw fault;
  }
}

/** Leaves out ticks, and records that the writer would make dead letters. */
async function readTail<R, Row extends ImportedRow>(
  subject: ImportSubject<R, Row>,
  { schemas, ...sources }: Parameters<typeof findTail>[0] & Pick<LogSources, 'schemas'>,
): Promise<Map<string, Row[]>> {
  const { topic, bounds } = await findTail(sources, [subject.topic, subject.codec]);
  const readValue = createRecordReader({ schemaOf: schemas.schemaOf, createReader: subject.codec.decoderOf });
  const tail = new Map<string, Row[]>();
  for (const { partition, start, end } of bounds)
    for await (const { value } of sources.log.read({ topic, partition, start, end })) {
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
