import { setTimeout as delay } from 'node:timers/promises';
import { createRecordReader, type RecordReader, type SchemaSource, TOPICS } from '@playline/contracts';
import { readFenceSet } from '@playline/erasure';
import type { People } from '@playline/people';
import { GROUPS } from '@playline/runtime';
import { createQueryRows, onEachNode, overAllNodes, type QueryRows } from '@playline/stores';
import { deadLetterTopicOf, type GroupOffsets } from '@playline/stream';
import { awaitClickHouse, awaitLog, awaitStore, nullIfUnreachable, withScope } from '../await-store.ts';
import { type CreateCommand, EXIT, endWith, jsonCommand, printResult, type Terminal } from '../command.ts';
import { findDrift } from '../derive/drift.ts';
import type { RebuildSources, StoresContext } from '../rebuild/with-stores.ts';
import { findCountDrift, findDayDrift } from '../verify/counts.ts';
import { FLOWS, type LoggedFact, readDeadOffsets } from '../verify/flows.ts';
import { findNodeDifferences } from '../verify/nodes.ts';
import { comparePersons } from '../verify/persons.ts';
import { toReplacedLogs } from '../verify/ranges.ts';
import { isClean, type PartitionReport, toJson, toLines, type VerifyReport } from '../verify/report.ts';
import { createStoredRows } from '../verify/stored-rows.ts';
import { type ReadFact, verifyFlow } from '../verify/verify-flow.ts';

export interface VerifyContext extends StoresContext {
  readonly openOffsets: () => Promise<GroupOffsets>;
}

const HELP = `
Checks that every log record below the event writer's committed offset has exactly one row. A record without a row is
lost unless another offset contains the same message, the record is a dead letter, or its data was erased. Duplicate
rows that events_exact removes are counted, but are not differences. Rows beyond the end of the log are reported. If a
log was replaced (npm run offsets), records are matched by content.

Then compares derived tables and the overview's counts of the last day with events and, if REDIS_URL is set, persons in
Redis with the tables. No data is changed.

Exit codes: 0 no differences, 1 differences found, 2 invalid arguments, 3 store not responding.`;

export const createVerifyCommand =
  (context: VerifyContext): CreateCommand =>
  (terminal) =>
    jsonCommand('verify', 'compare the log with the tables and report missing, duplicate and wrong rows')
      .option('--group <name>', 'consumer group of the event writer', GROUPS.writer)
      .addHelpText('after', HELP)
      .action(async ({ group, ...output }) => {
        const report = await verifyStores(context, group, terminal);
        printResult(terminal, output, toJson(report), toLines(report));
        endWith(isClean(report) ? EXIT.ok : EXIT.failed);
      });

async function verifyStores(context: VerifyContext, group: string, terminal: Terminal): Promise<VerifyReport> {
  const { schemaOf, topicPrefix } = context;
  const account = context.clickhouse();
  const query = createQueryRows(overAllNodes(account));
  const nodes = onEachNode(account).map((node) => createQueryRows(node));
  return withScope(async (open) => {
    const log = await open(context.openLog());
    const offsets = await open(context.openOffsets());
    const records = await open(context.openRecords());
    const people = await nullIfUnreachable(context.openPeople);
    if (people !== null) {
      await open(Promise.resolve(people));
      await awaitStore('Redis with an epoch', async () => (await people.readEpoch()) !== null);
    }
    await awaitClickHouse(query);
    await awaitLog(log);
    const onProgress = terminal.progress;
    const all = `${overAllNodes(account).database}.`;
    return verify({ log, offsets, query, nodes, all, records, people, schemaOf, topicPrefix, group, onProgress });
  });
}

interface VerifySources extends Omit<RebuildSources, 'writerGroup'> {
  readonly offsets: Pick<GroupOffsets, 'list'>;
  /** Null if no Redis address is configured. */
  readonly people: Pick<People, 'graph' | 'rebuild'> | null;
  readonly group: string;
  /** Queries each node of ClickHouse. `query` reads the rows of all nodes. */
  readonly nodes: readonly QueryRows[];
  /** Prefix of tables that contain the rows of all nodes. */
  readonly all: string;
}

/** Offsets per bitmap of 8 KiB. */
const BUCKET_OFFSETS = 65_536;

async function verify(options: VerifySources): Promise<VerifyReport> {
  const { log, query, records, schemaOf, topicPrefix, group, onProgress } = options;
  await assertCommitted(options);
  const replaced = toReplacedLogs(await options.offsets.list(group));
  const partitions: PartitionReport[] = [];
  for (const flow of FLOWS) {
    const reports = await verifyFlow(flow, {
      log,
      stored: createStoredRows(query, BUCKET_OFFSETS),
      readFact: createReadFact(schemaOf),
      replaced,
      topicPrefix,
      group,
      bucketSize: BUCKET_OFFSETS,
      onProgress,
      readDeadOffsets: () => readDeadOffsets(log, [deadLetterTopicOf(topicPrefix + flow.topic)]),
      readIsFenced: async () => {
        const fences = await readFenceSet(records);
        return (query) => fences.isFenced(query);
      },
    });
    for (const each of reports) partitions.push(each);
  }
  const { people } = options;
  const awaitStored = () => awaitDecisionsStored(options);
  const persons =
    people === null
      ? null
      : await comparePersons({ query, records, people, onProgress, awaitDecisionsStored: awaitStored });
  return {
    partitions,
    persons,
    derived: [
      ...(await findDrift(options.nodes, onProgress)),
      await findCountDrift(options.nodes[0]!, onProgress, options.all),
      await findDayDrift(options.nodes, onProgress),
    ],
    ...(options.nodes.length > 1 && { nodes: await findNodeDifferences(options.nodes, onProgress) }),
  };
}

/** A running writer stores decisions within seconds. */
const DECISIONS_STORED_MAX_MS = 30_000;
const DECISIONS_POLL_MS = 200;

/** Waits up to 30 s until the writer has committed the current end of the decision topic. */
async function awaitDecisionsStored({ log, topicPrefix, group }: VerifySources): Promise<void> {
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

/** @throws Error for a group without committed offsets, such as a mistyped group */
async function assertCommitted({ log, topicPrefix, group }: VerifySources): Promise<void> {
  let hasRecords = false;
  for (const { topic } of FLOWS) {
    if ((await log.committed(group, topicPrefix + topic)).size > 0) return;
    hasRecords ||= (await log.bounds(topicPrefix + topic)).some(({ start, end }) => end > start);
  }
  if (hasRecords) throw new Error(`consumer group '${group}' has no committed offsets: check --group`);
}

/** Returns null for an unreadable record, which is reported as lost. Errors of `schemaOf` end the command. */
function createReadFact(schemaOf: SchemaSource): ReadFact {
  const readers = new Map<string, RecordReader<LoggedFact>>();
  return async (flow, { value }) => {
    const readValue = readers.get(flow.topic) ?? createRecordReader({ schemaOf, createReader: flow.createDecoder });
    readers.set(flow.topic, readValue);
    const read = await readValue(value);
    return read.kind === 'record' ? read.record : null;
  };
}
