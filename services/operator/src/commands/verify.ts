import type { SchemaSource } from '@playline/contracts';
import type { ErasureRecords } from '@playline/erasure';
import type { People } from '@playline/people';
import { GROUPS } from '@playline/runtime';
import { type ClickHouseAccount, createQueryRows } from '@playline/stores';
import type { GroupOffsets, LogReader } from '@playline/stream';
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
import { isClean, toJson, toLines } from '../verify/report.ts';
import { verify } from '../verify/verify.ts';

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
