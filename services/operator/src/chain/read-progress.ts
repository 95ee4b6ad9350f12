import { createRecordReader, type IndexProgressRecord, indexProgressCodec, TOPICS } from '@playline/contracts';
import { withLog } from '../await-store.ts';
import type { LogSources } from '../writable-log.ts';

/** The time at which a block was reached, in milliseconds from any clock. */
export interface PaceSample {
  readonly atMs: number;
  readonly block: number;
}

/** Both fields are null while the pace is unknown. */
interface Pace {
  readonly blocksPerSecond: number | null;
  readonly remainingMs: number | null;
}

const UNKNOWN: Pace = { blocksPerSecond: null, remainingMs: null };

/** Calculates the pace over the last `windowMs`. @param samples in time order. @param to the last block */
export function paceOf(
  samples: readonly PaceSample[],
  { to, windowMs }: { readonly to: number; readonly windowMs: number },
): Pace {
  const last = samples.at(-1);
  if (last === undefined) return UNKNOWN;
  const first = samples.find(({ atMs }) => last.atMs - atMs <= windowMs)!;
  const [blocks, ms] = [last.block - first.block, last.atMs - first.atMs];
  if (ms <= 0 || blocks <= 0) return UNKNOWN;
  return { blocksPerSecond: (blocks * 1000) / ms, remainingMs: (Math.max(0, to - last.block) * ms) / blocks };
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Formats a duration, rounded up. */
export function toDurationText(ms: number): string {
  if (ms < MINUTE_MS) return `${Math.ceil(ms / SECOND_MS)} s`;
  const minutes = Math.ceil(ms / MINUTE_MS);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.ceil(ms / (24 * HOUR_MS))} days`;
}

/** Formats the pace, such as `120 blocks/s, about 3 min left (until 14:32 UTC)`, or '' if it is unknown. */
export function toPaceText({ blocksPerSecond, remainingMs }: Pace, nowMs: number): string {
  if (blocksPerSecond === null || remainingMs === null) return '';
  const rate = blocksPerSecond >= 10 ? Math.round(blocksPerSecond) : Number(blocksPerSecond.toPrecision(2));
  const end = new Date(nowMs + remainingMs).toISOString();
  const until = remainingMs < 24 * HOUR_MS ? end.slice(11, 16) : end.slice(0, 16).replace('T', ' ');
  return `${rate} blocks/s, about ${toDurationText(remainingMs)} left (until ${until} UTC)`;
}

export interface RecentProgress {
  readonly last: IndexProgressRecord;
  /** Progress in the ten minutes before `last`, except compacted records; times in epoch milliseconds. */
  readonly samples: readonly PaceSample[];
}

export const RECENT_MS = 600_000;

/** Returns the last completely published block, or -1. */
export const lastCompleteBlockOf = ({ block, nextLog }: IndexProgressRecord): number =>
  nextLog === null ? block : block - 1;

/** Reads the progress of each chain, by chain name. @throws UnreachableError */
export async function readProgress(sources: LogSources): Promise<Map<string, RecentProgress>> {
  return withLog(await sources.openLog(), async (log) => {
    const topic = sources.topicPrefix + TOPICS.indexProgress.name;
    const { schemaOf } = sources.schemas;
    const read = createRecordReader({ schemaOf, createReader: indexProgressCodec.decoderOf });
    const found = new Map<string, { last: IndexProgressRecord; samples: PaceSample[] }>();
    for (const bounds of await log.bounds(topic))
      for await (const { value } of log.read({ topic, ...bounds })) {
        const each = value === null ? null : await read(value);
        if (each?.kind !== 'record') continue;
        const { record } = each;
        const samples = found.get(record.chain)?.samples ?? [];
        samples.push({ atMs: record.changedAt, block: lastCompleteBlockOf(record) });
        while (record.changedAt - samples[0]!.atMs > RECENT_MS) samples.shift();
        found.set(record.chain, { last: record, samples });
      }
    return found;
  });
}
