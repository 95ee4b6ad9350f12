/** Imports lines into the topic of activities or tokens. */
import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { ActivityConstants, ChainStore, Parsed } from '@playline/chain';
import { createRecordReader, frameRecord } from '@playline/contracts';
import { inBatches } from '@playline/stores';
import { type Producer, sendAll } from '@playline/stream';
import { awaitLog, awaitStore, awaitWritable, createScope } from '../await-store.ts';
import { throwUnconfirmed } from '../command.ts';
import { findTail } from '../rebuild/log-tail.ts';
import type { RebuildSources } from '../rebuild/with-stores.ts';
import type { LogSources } from '../writable-log.ts';
import type { Line } from './lines.ts';
import { findForbidden, type ImportedRow, type ImportSubject } from './subjects.ts';

export interface ImportOptions<R, Row extends ImportedRow> {
  readonly subject: Pick<ImportSubject<R, Row>, 'toRow' | 'nameOf' | 'fixedFieldsOf'>;
  readonly parse: (line: unknown) => Parsed<R>;
  /** Called twice; must return the same lines. */
  readonly lines: () => AsyncIterable<Line>;
  /** Reads the last versions in the tables, by name. */
  readonly readStored: (rows: readonly Row[]) => Promise<ReadonlyMap<string, Row>>;
  /** Versions in the log that may not be in the tables yet, in log order, by name. */
  readonly tail: ReadonlyMap<string, readonly Row[]>;
  /** Resolves once the log contains all records in this order. */
  readonly publish: (records: readonly R[]) => Promise<void>;
  readonly onRefused: (number: number, faults: readonly string[]) => void;
  readonly onProgress: (line: string) => void;
  /** Aborted when the user interrupts the import; the current batch is still published. */
  readonly stop: AbortSignal;
}

export interface Imported {
  lines: number;
  published: number;
  /** Lines whose content is already stored. */
  unchanged: number;
  /** Lines that are replaced by a later line for the same activity or token. */
  superseded: number;
  refused: number;
}

/** Lines per query and per batch of records. */
const BATCH_LINES = 500;

/**
 * Publishes the last valid line for each activity or token, unless its content is already stored, so that an import can
 * be repeated. All lines are validated before the first line is published.
 * @throws Error if the lines changed during the import, or a source fails; earlier batches remain published
 */
export async function importLines<R, Row extends ImportedRow>(options: ImportOptions<R, Row>): Promise<Imported> {
  const result: Imported = { lines: 0, published: 0, unchanged: 0, superseded: 0, refused: 0 };
  const plan = await planLines(options, result);
  const toPublish = [...plan.values()].filter(({ line }) => line !== null).length;
  result.unchanged = plan.size - toPublish;
  result.superseded = result.lines - result.refused - plan.size;
  for await (const batch of inBatches(options.lines(), BATCH_LINES)) {
    if (options.stop.aborted) break;
    const records = batch.flatMap(({ number, value }) => {
      const parsed = options.parse(value);
      if (!parsed.ok) return [];
      const planned = plan.get(options.subject.nameOf(options.subject.toRow(parsed.record)));
      return planned?.line === number ? [parsed.record] : [];
    });
    if (records.length === 0) continue;
    await options.publish(records);
    result.published += records.length;
    options.onProgress(`${result.published} of ${toPublish} published`);
  }
  if (result.published !== toPublish && !options.stop.aborted) throw new Error(LINES_CHANGED);
  return result;
}

const LINES_CHANGED = 'the lines changed during the import: run the command again; it does not publish duplicates';

/** `line` is the number of the line to publish, or null if the content is already stored. */
async function planLines<R, Row extends ImportedRow>(options: ImportOptions<R, Row>, result: Imported) {
  const { subject, readStored, stop, onProgress } = options;
  const plan = new Map<string, { line: number | null; fixedFields: ActivityConstants | null }>();
  const refuse = (number: number, faults: readonly string[]) => {
    result.refused++;
    options.onRefused(number, faults);
  };
  for await (const batch of inBatches(options.lines(), BATCH_LINES)) {
    if (stop.aborted) break;
    const read = batch.flatMap((line) => readLine(line, options, refuse));
    const stored = await readStored(read.map(({ row }) => row));
    for (const { number, row } of read) {
      const name = subject.nameOf(row);
      const current = findCurrent(stored.get(name), name, options);
      const fixedFields = subject.fixedFieldsOf(row);
      const before = plan.get(name)?.fixedFields ?? (current === undefined ? null : subject.fixedFieldsOf(current));
      const forbidden = findForbidden(before, fixedFields);
      const isStored = current !== undefined && isDeepStrictEqual(contentOf(current), contentOf(row));
      const faults = forbidden.map((field) => `${field} would be changed, which is not allowed`);
      if (faults.length > 0) refuse(number, faults);
      else plan.set(name, { line: isStored ? null : number, fixedFields });
    }
    result.lines += batch.length;
    onProgress(`${result.lines} lines compared, ${result.refused} refused`);
  }
  return plan;
}

function readLine<R, Row extends ImportedRow>(
  { number, value, fault }: Line,
  { parse, subject }: ImportOptions<R, Row>,
  refuse: (number: number, faults: readonly string[]) => void,
): { number: number; row: Row }[] {
  const parsed = fault === null ? parse(value) : null;
  if (parsed?.ok) return [{ number, row: subject.toRow(parsed.record) }];
  const toText = ({ field, message }: { field: string; message: string }) =>
    message.startsWith(field) ? message : `${field}: ${message}`;
  refuse(number, parsed?.errors.map(toText) ?? [fault!]);
  return [];
}

/** Finds the current version after the writer has processed the log. The writer rejects changes to fixed fields. */
function findCurrent<R, Row extends ImportedRow>(
  stored: Row | undefined,
  name: string,
  { tail, subject }: ImportOptions<R, Row>,
): Row | undefined {
  return (tail.get(name) ?? []).reduce<Row | undefined>((current, row) => {
    if (current === undefined) return row;
    return findForbidden(subject.fixedFieldsOf(current), subject.fixedFieldsOf(row)).length === 0 ? row : current;
  }, stored);
}

/** Omits log position, time and trace. */
function contentOf({ updatedAt, partition, offset, loggedAtMs, traceId, ...content }: ImportedRow): object {
  return content;
}

export interface ImportSources extends LogSources {
  /** @param topic name with prefix */
  readonly openProducer: (topic: string) => Promise<Producer>;
  readonly openStore: () => Promise<ChainStore>;
}

/** `writerGroup` is the consumer group of the activity writer. */
type ImporterOptions = ImportSources & Pick<RebuildSources, 'writerGroup' | 'onProgress'>;

export interface ImportJob<R, Row extends ImportedRow>
  extends Pick<ImportOptions<R, Row>, 'lines' | 'tail' | 'onRefused' | 'onProgress' | 'stop'> {
  /** The only accepted chain, or null to accept all chains. */
  readonly chain: string | null;
}

export interface Importer<R, Row extends ImportedRow> {
  /** Reads versions that the writer has not committed, by name, in log order. Call this before reading the tables. */
  readTail(): Promise<Map<string, Row[]>>;
  /** @throws UnreachableError when the brokers do not confirm the records */
  import(job: ImportJob<R, Row>): Promise<Imported>;
  close(): Promise<void>;
}

/** @throws UnreachableError when a store does not respond, or the schema is not registered */
export async function openImporter<R, Row extends ImportedRow>(
  subject: ImportSubject<R, Row>,
  { openLog, openProducer, openStore, schemas, topicPrefix, writerGroup, onProgress }: ImporterOptions,
): Promise<Importer<R, Row>> {
  const topic = topicPrefix + subject.topic.name;
  const { open, close } = createScope();
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
    const next = 'run the command again; it does not publish duplicates';
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
            sendAll(producer, records.map(toLogged)).catch(throwUnconfirmed('the published records', next)),
        }),
    };
  } catch (fault) {
    await close();
    throw fault;
  }
}

/** Reads the uncommitted versions, except ticks and records that the writer would move to the dead-letter topic. */
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
