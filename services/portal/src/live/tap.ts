import type { LogReader, StreamRecord } from '@playline/stream';
import type { LiveLimits } from './limits.ts';
import { toQuotas } from './sample.ts';

/** What one look at the log has brought. */
export interface Drawn {
  /** In the order of their times. */
  readonly records: readonly StreamRecord[];
  /** Records that stood there and were not read. */
  readonly skipped: number;
}

export interface TapParts {
  readonly log: Pick<LogReader, 'bounds' | 'read'>;
  readonly limits: Pick<LiveLimits, 'recordsPerPollMax' | 'bytesPerPollMax'>;
}

/** Reads topics from where they ended when it was made: as part of no group, and leaving no trace. */
export interface Tap {
  /** Asks where the topics end, and reads from there on. @throws Error of the brokers; nothing was begun */
  begin(topics: readonly string[]): Promise<void>;
  /** What has come to these topics since; a sample of it when that is more than may be read. @throws Error of the brokers */
  draw(topics: readonly string[]): Promise<Drawn>;
}

/** One partition with something to read. */
interface Waiting {
  readonly topic: string;
  readonly partition: number;
  readonly start: number;
  readonly end: number;
}

export function createTap({ log, limits }: TapParts): Tap {
  const places = new Map<string, number[]>();

  const look = async (topic: string): Promise<Waiting[]> => {
    const bounds = await log.bounds(topic);
    const read = places.get(topic);
    // A partition that was added later is read from its start. A log that has lost its end is read on from where it ends now.
    const toStart = ({ partition, start, end }: (typeof bounds)[number]) =>
      read === undefined ? end : Math.min(end, Math.max(start, read[partition] ?? start));
    return bounds.map((each) => ({ topic, partition: each.partition, start: toStart(each), end: each.end }));
  };
  const moveTo = (waiting: readonly Waiting[]) => {
    for (const { topic, partition, end } of waiting) {
      const ends = places.get(topic) ?? [];
      ends[partition] = end;
      places.set(topic, ends);
    }
  };
  return {
    async begin(topics) {
      moveTo((await Promise.all(topics.map(look))).flat());
    },
    async draw(topics) {
      const waiting = (await Promise.all(topics.map(look))).flat().filter(({ start, end }) => end > start);
      const counts = waiting.map(({ start, end }) => end - start);
      const quotas = toQuotas(counts, limits.recordsPerPollMax);
      const bytesMax = Math.floor(limits.bytesPerPollMax / Math.max(1, waiting.length));
      const read = await Promise.all(
        waiting.map((each, index) => readNewest(log, each, { records: quotas[index]!, bytes: bytesMax })),
      );
      moveTo(waiting);
      const records = read.flat().sort((a, b) => a.timestampMs - b.timestampMs);
      return { records, skipped: Math.max(0, counts.reduce((sum, count) => sum + count, 0) - records.length) };
    },
  };
}

/** The newest records of a partition; fewer where they are large. */
async function readNewest(
  log: TapParts['log'],
  { topic, partition, end, start }: Waiting,
  most: { records: number; bytes: number },
): Promise<StreamRecord[]> {
  const taken: StreamRecord[] = [];
  if (most.records === 0) return taken;
  let bytes = 0;
  for await (const record of log.read({ topic, partition, start: Math.max(start, end - most.records), end })) {
    bytes += (record.value?.length ?? 0) + (record.key?.length ?? 0);
    taken.push(record);
    if (bytes >= most.bytes) break;
  }
  return taken;
}
