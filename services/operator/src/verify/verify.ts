import { setTimeout as delay } from 'node:timers/promises';
import { createRecordReader, type RecordReader, type SchemaSource, TOPICS } from '@playline/contracts';
import { type ErasureRecords, readFenceSet } from '@playline/erasure';
import type { People } from '@playline/people';
import type { QueryRows } from '@playline/stores';
import type { GroupOffsets, LogReader } from '@playline/stream';
import { deadLetterTopicOf } from '@playline/stream';
import { findDrift } from '../derive/drift.ts';
import { readDeadOffsets } from './dead-offsets.ts';
import { FLOWS, type LoggedFact } from './flows.ts';
import { comparePersons } from './persons.ts';
import { toReplacedLogs } from './replaced-logs.ts';
import type { PartitionReport, VerifyReport } from './report.ts';
import { createStoredRows } from './stored-rows.ts';
import { type ReadFact, verifyFlow } from './verify-flow.ts';

export interface VerifyOptions {
  readonly log: LogReader;
  readonly offsets: Pick<GroupOffsets, 'list'>;
  readonly query: QueryRows;
  readonly records: Pick<ErasureRecords, 'readFences'>;
  /** Redis, to compare persons with; null when its address is not configured. */
  readonly people: Pick<People, 'graph' | 'rebuild'> | null;
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
  const { people } = options;
  const persons =
    people === null
      ? null
      : await comparePersons({
          query,
          records,
          people,
          onProgress,
          awaitDecisionsStored: () => awaitDecisionsStored(options),
        });
  return { partitions, persons, derived: await findDrift(query, onProgress) };
}

/** A writer that runs stores a decision within seconds. */
const DECISIONS_STORED_MAX_MS = 30_000;
const DECISIONS_POLL_MS = 200;

/** Waits until the writer has committed the present end of the decisions, for half a minute at most. */
async function awaitDecisionsStored({ log, topicPrefix, group }: VerifyOptions): Promise<void> {
  const topic = topicPrefix + TOPICS.identityDecisions.name;
  const ends = await log.bounds(topic);
  const untilMs = performance.now() + DECISIONS_STORED_MAX_MS;
  for (;;) {
    const committed = await log.committed(group, topic);
    const isStored = ends.every(({ partition, start, end }) => end === start || (committed.get(partition) ?? 0) >= end);
    if (isStored || performance.now() > untilMs) return;
    await delay(DECISIONS_POLL_MS);
  }
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
