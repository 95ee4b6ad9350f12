import { createRecordReader, type IndexProgressRecord, indexProgressCodec, TOPICS } from '@playline/contracts';
import { withLog } from '../await-store.ts';
import type { LogSources } from '../writable-log.ts';
import type { PaceSample } from './pace.ts';

export interface RecentProgress {
  readonly last: IndexProgressRecord;
  /** Progress within ten minutes before the last one, unless compacted; epoch milliseconds. */
  readonly samples: readonly PaceSample[];
}

export const RECENT_MS = 600_000;

/** The last block that is published completely, or -1. */
export const lastCompleteBlockOf = ({ block, nextLog }: IndexProgressRecord): number =>
  nextLog === null ? block : block - 1;

/** The progress of each chain, by name. @throws UnreachableError */
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
