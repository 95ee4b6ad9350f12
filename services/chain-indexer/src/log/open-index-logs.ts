import {
  activityCodec,
  createRecordReader,
  frameRecord,
  type IndexProgressRecord,
  indexProgressCodec,
  type RecordCodec,
  type SchemaSource,
  TOPICS,
  type Topic,
  tokenCodec,
} from '@playline/contracts';
import type { TraceSpan, Tracing } from '@playline/runtime';
import {
  type AtomicPublisher,
  awaitStableBounds,
  deadLetterTopicOf,
  isTakenOver,
  type LogReader,
  NOTICE_STEP,
  type TransactionRecord,
} from '@playline/stream';
import { FencedFault, type IndexBatch, type IndexLog, type IndexLogs } from '../index-log.ts';
import { type SummaryNotice, toNoticeText } from '../steps/block-summaries.ts';

export interface IndexLogsOptions {
  /** Opens a publisher and fences earlier publishers with the same id. */
  readonly openPublisher: (name: string) => Promise<AtomicPublisher>;
  readonly log: LogReader;
  /** @param topic name with its prefix */
  readonly schemaIdOf: (topic: string, schema: string) => Promise<number>;
  readonly schemaOf: SchemaSource;
  readonly topicPrefix: string;
  readonly tracing: Pick<Tracing, 'sample' | 'start'> | null;
}

type SchemaIds = Readonly<Record<'activities' | 'tokens' | 'progress', number>>;

/** Opens the logs. `close` also closes the reader. */
export function openIndexLogs(options: IndexLogsOptions): IndexLogs & { close(): Promise<void> } {
  const { openPublisher, log, topicPrefix } = options;
  const nameOf = (topic: Topic) => topicPrefix + topic.name;
  const readProgress = async (chain: string): Promise<IndexProgressRecord | null> => {
    let last: IndexProgressRecord | null = null;
    for await (const record of readChain(options, { topic: TOPICS.indexProgress, codec: indexProgressCodec, chain }))
      last = record;
    return last;
  };
  const readIds = async (): Promise<SchemaIds> => {
    const idOf = (topic: Topic, { schema }: { schema: string }) => options.schemaIdOf(nameOf(topic), schema);
    return {
      activities: await idOf(TOPICS.activities, activityCodec),
      tokens: await idOf(TOPICS.tokens, tokenCodec),
      progress: await idOf(TOPICS.indexProgress, indexProgressCodec),
    };
  };
  return {
    readProgress,
    async open(chain): Promise<IndexLog> {
      const ids = await readIds();
      const publisher = await openPublisher(`${topicPrefix}chain-indexer.${chain}`);
      try {
        // Another chain's open transaction may hide the last progress.
        await awaitComplete(log, nameOf(TOPICS.indexProgress), Buffer.from(chain));
        const progress = await readProgress(chain);
        return {
          progress,
          readTokens: createReadTokens(options, chain),
          publish: async (batch) => {
            const span = startSpan(options.tracing, batch);
            const headers: TransactionRecord['headers'] = span === null ? {} : { traceparent: span.traceparent };
            try {
              await publish(publisher, toRecords(batch, ids, { topicPrefix, headers }));
              span?.end();
            } catch (fault) {
              span?.end(fault);
              throw fault;
            }
          },
          close: () => publisher.close(),
        };
      } catch (fault) {
        await publisher.close();
        throw fault;
      }
    },
    close: () => log.close(),
  };
}

/** Reads published tokens, because publishing a token again would overwrite an operator's changes. */
function createReadTokens(options: IndexLogsOptions, chain: string): IndexLog['readTokens'] {
  const readTo = new Map<number, number>();
  return async () => {
    await awaitComplete(options.log, options.topicPrefix + TOPICS.tokens.name);
    const tokens = new Set<string>();
    const requested = { topic: TOPICS.tokens, codec: tokenCodec, chain, readTo };
    for await (const { contractAddress } of readChain(options, requested))
      tokens.add(`0x${contractAddress.toString('hex')}`);
    return tokens;
  };
}

/** Activities belong to no request, so their batch starts a trace. */
function startSpan(tracing: IndexLogsOptions['tracing'], { activities, progress }: IndexBatch): TraceSpan | null {
  if (activities.length === 0 || tracing?.sample() !== true) return null;
  const attributes = { 'playline.chain': progress.chain, 'messaging.batch.message_count': activities.length };
  return tracing.start({ name: 'publish activities', kind: 'producer', attributes });
}

async function publish(publisher: AtomicPublisher, records: readonly TransactionRecord[]): Promise<void> {
  try {
    await publisher.publish(records);
  } catch (cause) {
    if (isTakenOver(cause)) throw new FencedFault("another indexer has opened the chain's log", { cause });
    throw cause;
  }
}

function toRecords(
  { activities, tokens, notices, progress }: IndexBatch,
  ids: SchemaIds,
  { topicPrefix: prefix, headers }: { topicPrefix: string; headers: TransactionRecord['headers'] },
): TransactionRecord[] {
  const toRecord = (topic: Topic, key: string, value: Buffer): TransactionRecord => ({
    topic: prefix + topic.name,
    key: Buffer.from(key),
    value,
    headers,
  });
  return [
    ...activities.map((activity) =>
      toRecord(TOPICS.activities, activity.chain, frameRecord(ids.activities, activityCodec.encode(activity))),
    ),
    ...tokens.map((token) => {
      const key = `${token.chain} 0x${token.contractAddress.toString('hex')}`;
      return toRecord(TOPICS.tokens, key, frameRecord(ids.tokens, tokenCodec.encode(token)));
    }),
    ...notices.map((notice) => toDeadLetter(notice, { chain: progress.chain, topic: prefix + TOPICS.activities.name })),
    toRecord(TOPICS.indexProgress, progress.chain, frameRecord(ids.progress, indexProgressCodec.encode(progress))),
  ];
}

/** Creates a dead letter that has no original record. */
function toDeadLetter(notice: SummaryNotice, { chain, topic }: { chain: string; topic: string }): TransactionRecord {
  const toText = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);
  const headers = {
    reason: toNoticeText(chain, notice),
    step: NOTICE_STEP,
    'original-topic': topic,
    'original-partition': '0',
    'original-offset': '0',
  };
  const value = Buffer.from(JSON.stringify({ chain, ...notice }, toText));
  return { topic: deadLetterTopicOf(topic), key: Buffer.from(chain), value, headers };
}

/** Waits until no existing record is in an open transaction. @param key limits the wait to the key's partition */
async function awaitComplete(log: LogReader, topic: string, key?: Buffer): Promise<void> {
  if ((await awaitStableBounds(log, topic, key)).length === 0) throw new Error(`there is no topic ${topic}`);
}

interface ChainTopic<T> {
  readonly topic: Topic;
  readonly codec: RecordCodec<T>;
  readonly chain: string;
  /** The next offset per partition, updated while reading. */
  readonly readTo?: Map<number, number>;
}

/** Reads a chain's records from a compacted topic. */
async function* readChain<T extends { chain: string }>(
  { log, schemaOf, topicPrefix }: IndexLogsOptions,
  { topic, codec, chain, readTo = new Map() }: ChainTopic<T>,
): AsyncGenerator<T> {
  const readValue = createRecordReader({ schemaOf, createReader: codec.decoderOf });
  const name = topicPrefix + topic.name;
  for (const { partition, start: first, end } of await log.bounds(name)) {
    const start = Math.max(first, readTo.get(partition) ?? 0);
    for await (const { key, value } of log.read({ topic: name, partition, start, end })) {
      if (value === null || !belongsToChain(key, chain)) continue;
      const read = await readValue(value);
      if (read.kind === 'record' && read.record.chain === chain) yield read.record;
    }
    readTo.set(partition, end);
  }
}

function belongsToChain(key: Buffer | null, chain: string): boolean {
  const text = key?.toString() ?? '';
  return text === chain || text.startsWith(`${chain} `);
}
