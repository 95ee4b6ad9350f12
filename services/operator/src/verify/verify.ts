import { createRecordReader, type RecordReader, type SchemaSource } from '@playline/contracts';
import { type ErasureRecords, readFenceSet } from '@playline/erasure';
import { deadLetterTopicOf } from '@playline/errors';
import type { QueryRows } from '@playline/runtime';
import type { GroupOffsets, LogReader } from '@playline/stream';
import { findDrift } from '../derive/drift.ts';
import { readDeadOffsets } from './dead-offsets.ts';
import { FLOWS, type LoggedFact } from './flows.ts';
import { toReplacedLogs } from './replaced-logs.ts';
import type { PartitionReport, VerifyReport } from './report.ts';
import { createStoredRows } from './stored-rows.ts';
import { type ReadFact, verifyFlow } from './verify-flow.ts';

export interface VerifyOptions {
  readonly log: LogReader;
  readonly offsets: Pick<GroupOffsets, 'list'>;
  readonly query: QueryRows;
  readonly records: Pick<ErasureRecords, 'readFences'>;
  /** Returns the text of a schema. @throws UnknownSchemaFault */
  readonly schemaOf: SchemaSource;
  readonly topicPrefix: string;
  /** Consumer group of the writer. */
  readonly group: string;
  readonly onProgress: (line: string) => void;
}

/** Offsets counted together: one bitmap of 8 KiB, and 1,500 counts for a hundred million records. */
const BUCKET_OFFSETS = 65_536;

/** Compares every topic of the event writer with its table. Only reads. @throws Error of a store */
export async function verify(options: VerifyOptions): Promise<VerifyReport> {
  const { log, query, records, schemaOf, topicPrefix, group, onProgress } = options;
  await assertCommitted(options);
  const replaced = toReplacedLogs(await options.offsets.list(group));
  const partitions: PartitionReport[] = [];
  for (const flow of FLOWS) {
    const parts = {
      log,
      stored: createStoredRows(query, BUCKET_OFFSETS),
      readFact: createReadFact(schemaOf),
      replaced,
      topicPrefix,
      group,
      bucketSize: BUCKET_OFFSETS,
      onProgress,
    };
    for (const each of await verifyFlow(flow, {
      ...parts,
      readDeadOffsets: () => readDeadOffsets(log, [deadLetterTopicOf(topicPrefix + flow.topic)]),
      readIsFenced: async () => {
        const fences = await readFenceSet(records);
        return (question) => fences.isFenced(question);
      },
    }))
      partitions.push(each);
  }
  return { partitions, derived: await findDrift(query, onProgress) };
}

/** A misspelt group has committed nothing, so nothing would be compared. @throws Error */
async function assertCommitted({ log, topicPrefix, group }: VerifyOptions): Promise<void> {
  let hasRecords = false;
  for (const { topic } of FLOWS) {
    if ((await log.committed(group, topicPrefix + topic)).size > 0) return;
    hasRecords ||= (await log.bounds(topicPrefix + topic)).some(({ start, end }) => end > start);
  }
  if (hasRecords) throw new Error(`the consumer group '${group}' has committed nothing: is --group the writer's?`);
}

/**
 * Creates the reader of records, each with the schema it was written with. An unreadable record is not explained, and
 * so it is reported.
 * @param schemaOf its fault ends the command
 */
function createReadFact(schemaOf: SchemaSource): ReadFact {
  const readers = new Map<string, RecordReader<LoggedFact>>();
  return async (flow, { value }) => {
    const readValue = readers.get(flow.topic) ?? createRecordReader({ schemaOf, createReader: flow.createDecoder });
    readers.set(flow.topic, readValue);
    const read = await readValue(value);
    return read.kind === 'record' ? read.record : null;
  };
}
