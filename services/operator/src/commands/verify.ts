import { setTimeout as delay } from 'node:timers/promises';
import { createRecordReader, type RecordReader, type SchemaSource, TOPICS } from '@playline/contracts';
import { type ErasureRecords, readFenceSet } from '@playline/erasure';
import type { People } from '@playline/people';
import { GROUPS } from '@playline/runtime';
import { type ClickHouseAccount, createQueryRows, type QueryRows } from '@playline/stores';
import { deadLetterTopicOf, type GroupOffsets, type LogReader } from '@playline/stream';
import { awaitClickHouse, awaitLog, awaitStore, withSeveral } from '../await-store.ts';
import {
  type Command,
  EXIT,
  type ExitCode,
  parseOptions,
  type Terminal,
  textOf,
  UnreachableError,
} from '../command.ts';
import { findDrift } from '../derive/drift.ts';
import { FLOWS, type LoggedFact, readDeadOffsets } from '../verify/flows.ts';
import { comparePersons } from '../verify/persons.ts';
import { toReplacedLogs } from '../verify/replaced-logs.ts';
import { isClean, type PartitionReport, toJson, toLines, type VerifyReport } from '../verify/report.ts';
import { createStoredRows } from '../verify/stored-rows.ts';
import { type ReadFact, verifyFlow } from '../verify/verify-flow.ts';

export interface VerifyContext {
  readonly openLog: () => Promise<LogReader>;
  readonly openOffsets: () => Promise<GroupOffsets>;
  readonly openRecords: () => Promise<ErasureRecords>;
  /** Throws UnreachableError when the address of Redis is not configured. */
  readonly openPeople: () => Promise<People>;
  /** Texts of the schemas that records were written with. */
  readonly schemaOf: SchemaSource;
  readonly clickhouse: () => ClickHouseAccount;
  /** TOPIC_PREFIX */
  readonly topicPrefix: string;
}

const HELP = `usage: operator verify [options]          (npm run verify -- [options])

Compares, partition by partition, the log with the rows that the event writer made of it, up to what it has committed:
every record has its row, once. Raw rows that repeat and that events_exact shows once are counted, and are no
difference. A record without a row is accounted for by the same message at another offset, by a
dead letter, or by the fence of an erasure; anything else is lost. Rows behind the end of the log are reported too. Where a log was replaced (npm run offsets), rows of
the one that is gone stay, and each record is looked for by what it is, not by its offset.
Then the person of each linked identity in Redis with the one in the tables, if REDIS_URL is set.
Then each table that follows from events with the events: one that has drifted is named.
Reads only. May run beside everything else.

  --group ${GROUPS.writer}     consumer group of the writer
  --json                   the result as one JSON line

Exit code: 0 all accounted for, 1 a difference, 2 wrong options, 3 a store does not answer.`;

const OPTIONS = {
  group: { type: 'string', default: GROUPS.writer },
  json: { type: 'boolean', default: false },
} as const;

async function openIfConfigured(openPeople: () => Promise<People>): Promise<People | null> {
  try {
    return await openPeople();
  } catch (fault) {
    if (fault instanceof UnreachableError) return null;
    throw fault;
  }
}

export function createVerifyCommand(context: VerifyContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const { values } = parseOptions(args, OPTIONS);
    const query = createQueryRows(context.clickhouse());
    return withSeveral(async (open) => {
      const log = await open(context.openLog());
      const offsets = await open(context.openOffsets());
      const records = await open(context.openRecords());
      const people = await openIfConfigured(context.openPeople);
      if (people !== null) {
        await open(Promise.resolve(people));
        await awaitStore('Redis with an epoch', async () => (await people.readEpoch()) !== null);
      }
      await awaitClickHouse(query);
      await awaitLog(log);
      const report = await verify({
        log,
        offsets,
        query,
        records,
        people,
        schemaOf: context.schemaOf,
        topicPrefix: context.topicPrefix,
        group: textOf(values, 'group') ?? OPTIONS.group.default,
        onProgress: terminal.progress,
      });
      if (values.json === true) terminal.result(JSON.stringify(toJson(report)));
      else for (const line of toLines(report)) terminal.result(line);
      return isClean(report) ? EXIT.ok : EXIT.failed;
    });
  };
  return { name: 'verify', summary: 'compare the log with the tables: gaps, doubles, overlaps', help: HELP, run };
}

interface VerifyOptions {
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
async function verify(options: VerifyOptions): Promise<VerifyReport> {
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
