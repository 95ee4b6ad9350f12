import { createRecordReader, type RecordCodec, type Topic } from '@playline/contracts';
import type { LogBounds, StreamRecord } from '@playline/stream';
import type { RebuildSources } from './with-stores.ts';

/** Part of a topic, and its end when it was looked at. */
export interface LogTail<R> {
  readonly topic: string;
  readonly codec: RecordCodec<R>;
  readonly bounds: readonly LogBounds[];
}

export interface ReadRecord<R> {
  readonly record: StreamRecord;
  readonly value: R;
}

/** What a tail depends on; the group is that of the tables' writer. */
type TailSources = Pick<RebuildSources, 'log' | 'topicPrefix' | 'writerGroup' | 'onProgress'>;
type Named<R> = readonly [topic: Topic, codec: RecordCodec<R>];

/**
 * The part of a topic that the tables may lack: from the writer's commits to the end. Commits are read before the end,
 * and tables must be read after both: so nothing is missed.
 * @throws Error when the topic does not exist
 */
export async function findTail<R>(sources: TailSources, [{ name }, codec]: Named<R>): Promise<LogTail<R>> {
  const topic = sources.topicPrefix + name;
  const committed = await sources.log.committed(sources.writerGroup, topic);
  const bounds = (await boundsOf(sources, topic)).map(({ partition, start, end }) => {
    const next = committed.get(partition) ?? start;
    if (next < start)
      sources.onProgress(
        `${topic}/${partition}: ${start - next} records expired before ${sources.writerGroup} had them, and are lost`,
      );
    return { partition, start: Math.max(start, Math.min(next, end)), end };
  });
  return { topic, codec, bounds };
}

/** A whole topic. @throws Error when it does not exist */
export async function findWhole<R>(sources: RebuildSources, [{ name }, codec]: Named<R>): Promise<LogTail<R>> {
  const topic = sources.topicPrefix + name;
  return { topic, codec, bounds: await boundsOf(sources, topic) };
}

/** What was added after the end of a part. */
export async function findGrowth<R>(sources: RebuildSources, tail: LogTail<R>): Promise<LogTail<R>> {
  const ends = new Map(tail.bounds.map(({ partition, end }) => [partition, end]));
  const bounds = await boundsOf(sources, tail.topic);
  return { ...tail, bounds: bounds.map((now) => ({ ...now, start: ends.get(now.partition) ?? now.start })) };
}

export function countOffsets({ bounds }: Pick<LogTail<unknown>, 'bounds'>): number {
  return bounds.reduce((sum, { start, end }) => sum + Math.max(0, end - start), 0);
}

/** @throws Error when the topic does not exist: with a wrong prefix a rebuild would find nothing and succeed */
export async function boundsOf({ log }: Pick<RebuildSources, 'log'>, topic: string): Promise<LogBounds[]> {
  const bounds = await log.bounds(topic);
  if (bounds.length === 0) throw new Error(`there is no topic ${topic}: are KAFKA_BROKERS and TOPIC_PREFIX right?`);
  return bounds;
}

/**
 * Records of the part, in the order of each partition. An unreadable one is reported and skipped, as the event writer
 * makes it a dead letter.
 * @throws Error of the log or of the registry
 */
export async function* readTail<R>(sources: RebuildSources, tail: LogTail<R>): AsyncGenerator<ReadRecord<R>> {
  const readValue = createRecordReader({ schemaOf: sources.schemaOf, createReader: tail.codec.decoderOf });
  for (const { partition, start, end } of tail.bounds)
    for await (const record of sources.log.read({ topic: tail.topic, partition, start, end })) {
      const read = await readValue(record.value);
      if (read.kind === 'record') yield { record, value: read.record };
      else sources.onProgress(`${tail.topic}/${partition}/${record.offset} cannot be read, and is left out`);
    }
}
