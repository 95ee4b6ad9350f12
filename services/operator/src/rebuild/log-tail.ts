/** Reads the part of a topic that may not be in the tables yet. */
import { createRecordReader, type RecordCodec, type Topic } from '@playline/contracts';
import type { LogBounds, StreamRecord } from '@playline/stream';
import type { RebuildSources } from './with-stores.ts';

export interface LogTail<R> {
  readonly topic: string;
  readonly codec: RecordCodec<R>;
  readonly bounds: readonly LogBounds[];
}

type TailSources = Pick<RebuildSources, 'log' | 'topicPrefix' | 'writerGroup' | 'onProgress'>;
type TopicCodec<R> = readonly [topic: Topic, codec: RecordCodec<R>];

/**
 * Finds the range from the writer's committed offsets to the end of the topic. Call this before reading the tables.
 * @throws Error when the topic does not exist
 */
export async function findTail<R>(sources: TailSources, [{ name }, codec]: TopicCodec<R>): Promise<LogTail<R>> {
  const topic = sources.topicPrefix + name;
  const committed = await sources.log.committed(sources.writerGroup, topic);
  const bounds = (await boundsOf(sources, topic)).map(({ partition, start, end }) => {
    const next = committed.get(partition) ?? start;
    if (next < start)
      sources.onProgress(
        `${topic}/${partition}: records that expired before ${sources.writerGroup} read them: ${start - next}`,
      );
    return { partition, start: Math.max(start, Math.min(next, end)), end };
  });
  return { topic, codec, bounds };
}

/** Finds the whole range of a topic. @throws Error when the topic does not exist */
export async function findTopic<R>(sources: RebuildSources, [{ name }, codec]: TopicCodec<R>): Promise<LogTail<R>> {
  const topic = sources.topicPrefix + name;
  return { topic, codec, bounds: await boundsOf(sources, topic) };
}

/** Finds the range of records that were added after the end of a tail. */
export async function findGrowth<R>(sources: RebuildSources, tail: LogTail<R>): Promise<LogTail<R>> {
  const ends = new Map(tail.bounds.map(({ partition, end }) => [partition, end]));
  const bounds = await boundsOf(sources, tail.topic);
  return { ...tail, bounds: bounds.map((each) => ({ ...each, start: ends.get(each.partition) ?? each.start })) };
}

export function countOffsets({ bounds }: Pick<LogTail<unknown>, 'bounds'>): number {
  return bounds.reduce((sum, { start, end }) => sum + Math.max(0, end - start), 0);
}

/** @throws Error when the topic does not exist: with a wrong prefix, a rebuild would restore no data and succeed */
export async function boundsOf({ log }: Pick<RebuildSources, 'log'>, topic: string): Promise<LogBounds[]> {
  const bounds = await log.bounds(topic);
  if (bounds.length === 0) throw new Error(`Topic ${topic} does not exist: check KAFKA_BROKERS and TOPIC_PREFIX.`);
  return bounds;
}

/** Reads records partition by partition. Unreadable records are reported and skipped, as in the event writer. */
export async function* readTail<R>(
  sources: RebuildSources,
  tail: LogTail<R>,
): AsyncGenerator<{ readonly record: StreamRecord; readonly value: R }> {
  const readValue = createRecordReader({ schemaOf: sources.schemaOf, createReader: tail.codec.decoderOf });
  for (const { partition, start, end } of tail.bounds)
    for await (const record of sources.log.read({ topic: tail.topic, partition, start, end })) {
      const read = await readValue(record.value);
      if (read.kind === 'record') yield { record, value: read.record };
      else sources.onProgress(`${tail.topic}/${partition}/${record.offset} is unreadable and was skipped`);
    }
}
