import { createRecordReader, type IndexProgressRecord, indexProgressCodec, TOPICS } from '@playline/contracts';
import type { LogReader } from '@playline/stream';
import type { Schemas } from '../await-schema.ts';
import { awaitStore } from '../await-store.ts';

export interface ProgressSources {
  readonly openLog: () => LogReader;
  readonly schemas: Schemas;
  /** TOPIC_PREFIX */
  readonly topicPrefix: string;
}

/** How far each chain is indexed, by its name. @throws UnreachableError when Kafka or the registry does not answer */
export async function readProgress(sources: ProgressSources): Promise<Map<string, IndexProgressRecord>> {
  const log = sources.openLog();
  try {
    await awaitStore('Kafka', async () => (await log.bounds('')).length === 0);
    const topic = sources.topicPrefix + TOPICS.indexProgress.name;
    const read = createRecordReader({
      schemaOf: sources.schemas.schemaOf,
      createReader: indexProgressCodec.decoderOf,
    });
    const found = new Map<string, IndexProgressRecord>();
    for (const bounds of await log.bounds(topic))
      for await (const { value } of log.read({ topic, ...bounds })) {
        const each = value === null ? null : await read(value);
        if (each?.kind === 'record') found.set(each.record.chain, each.record);
      }
    return found;
  } finally {
    await log.close();
  }
}
