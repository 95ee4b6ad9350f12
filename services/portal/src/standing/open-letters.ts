import { deadLetterTopicOf, type LogReader, SETTLED_OFFSET, type StreamRecord } from '@playline/stream';

/** Records that could not be processed, and that nobody has replayed or dropped. */
export interface OpenLetters {
  readonly total: number;
  /** By environment id, of those that tell which. */
  readonly byEnvironment: ReadonlyMap<string, number>;
  /** False where there are more than are counted: all numbers are at least so high. */
  readonly isWhole: boolean;
}

export interface OpenLettersParts {
  readonly log: Pick<LogReader, 'bounds' | 'read'>;
  /** Topics whose dead letters are counted, as they are called on the brokers. */
  readonly topics: readonly string[];
  /** Environment of a letter; null where it does not tell. */
  readonly environmentOf: (topic: string, letter: StreamRecord) => Promise<string | null>;
  /** Records read of a partition at most, the newest. */
  readonly recordsMax?: number;
}

/** A healthy pipeline has none. With a thousand in one partition the exact number matters no more: the command lists them. */
const RECORDS_MAX = 1_000;

/** Counts the open letters. Reads the newest of each partition; their topics are empty as a rule. @throws Error of the brokers */
export async function countOpenLetters(parts: OpenLettersParts): Promise<OpenLetters> {
  const { log, topics, environmentOf, recordsMax = RECORDS_MAX } = parts;
  const byEnvironment = new Map<string, number>();
  let total = 0;
  let isWhole = true;
  for (const topic of topics) {
    const deadTopic = deadLetterTopicOf(topic);
    for (const { partition, start, end } of await log.bounds(deadTopic)) {
      if (end - start > recordsMax) isWhole = false;
      for (const letter of await readOpen(log, {
        topic: deadTopic,
        partition,
        start: Math.max(start, end - recordsMax),
        end,
      })) {
        total++;
        const environmentId = await environmentOf(topic, letter);
        if (environmentId !== null) byEnvironment.set(environmentId, (byEnvironment.get(environmentId) ?? 0) + 1);
      }
    }
  }
  return { total, byEnvironment, isWhole };
}

/** A mark that settles a letter stands behind it in the same partition. */
async function readOpen(
  log: OpenLettersParts['log'],
  range: Parameters<LogReader['read']>[0],
): Promise<readonly StreamRecord[]> {
  const open = new Map<number, StreamRecord>();
  for await (const record of log.read(range)) {
    const settled = record.headers[SETTLED_OFFSET];
    if (settled === undefined) open.set(record.offset, record);
    else open.delete(Number(String(settled)));
  }
  return [...open.values()];
}
