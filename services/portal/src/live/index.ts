/** Opens Live, which reads messages from Kafka and fences from ClickHouse. */
import { type SchemaSource, TOPICS } from '@playline/contracts';
import { type ErasureRecords, openFenceSet, type StoredFence } from '@playline/erasure';
import type { Closable, Logger } from '@playline/runtime';
import type { QueryRows } from '@playline/stores';
import { deadLetterTopicOf, type LogReader } from '@playline/stream';
import { createQueryView, millis, text } from '../reads/query-view.ts';
import { type LiveHub, openLiveHub } from './hub.ts';

export * from './event.ts';
export * from './filter.ts';
export * from './hub.ts';
export type { Subscriber } from './subscriber.ts';

interface LiveSources {
  readonly log: LogReader;
  readonly schemaOf: SchemaSource;
  readonly topicPrefix: string;
  readonly writerGroup: string;
  /** Reads the fences of each environment that has subscribers, once a second. */
  readonly query: QueryRows;
  readonly logger: Logger;
}

export function openLive({ log, query, topicPrefix, logger, ...rest }: LiveSources): LiveHub & Closable {
  const [messages, rejections] = [topicPrefix + TOPICS.messages.name, topicPrefix + TOPICS.rejections.name];
  const hub = openLiveHub({
    ...rest,
    log,
    topics: { messages, rejections, deadLetters: [deadLetterTopicOf(messages), deadLetterTopicOf(rejections)] },
    openFences: (environmentId) => {
      let wasReported = false;
      return openFenceSet({
        records: createViewFences(query, environmentId),
        onFault: (error) => {
          // Logs only the first error, because the fences are read once a second.
          if (!wasReported) logger.warn({ error }, 'cannot read fences; live messages will be hidden in five seconds');
          wasReported = true;
        },
      });
    },
    onFault: (error) => logger.warn({ error }, 'cannot read live messages from Kafka; retrying'),
  });
  const closeHub = hub.close.bind(hub);
  return Object.assign(hub, {
    close: async () => {
      await closeHub();
      await log.close();
    },
  });
}

/** Must be less than the 20,000 rows to which ClickHouse limits results for the account. */
const PAGE_ROWS = 10_000;
/** A fence becomes visible some time after its timestamp, so each read repeats the last minute. */
const REREAD_MS = 60_000;
const COMPLETE = 'complete';
const FENCE_COLUMNS = {
  key: { sql: 'identity_id', read: (value: unknown) => Buffer.from(String(value), 'hex') },
  cutoffMs: millis('cutoff_at'),
  erasureId: text('toString(erasure_id)'),
  fencedAtMs: millis('fenced_at'),
};

/** The first read returns all fences of the environment. Later reads return only new fences. */
function createViewFences(query: QueryRows, environmentId: string): Pick<ErasureRecords, 'readFences'> {
  let newestMs = 0;
  return {
    readFences: async function* ({ knownParts, signal } = {}) {
      const sinceMs = knownParts?.has(COMPLETE) === true ? newestMs - REREAD_MS : 0;
      const queryView = createQueryView(query, signal === undefined ? {} : { signal });
      for (let after = ''; ; ) {
        const page = await queryView({
          view: 'portal_fences',
          args: { environment: environmentId, after, since: Math.max(0, sinceMs) },
          columns: FENCE_COLUMNS,
          tail: 'ORDER BY identity_id',
          rowsMax: PAGE_ROWS,
        });
        for (const { erasureId, ...fence } of page) {
          newestMs = Math.max(newestMs, fence.fencedAtMs);
          const id = Buffer.from(erasureId.replaceAll('-', ''), 'hex');
          yield { ...fence, environmentId, erasureId: id, part: COMPLETE } satisfies StoredFence;
        }
        if (page.length < PAGE_ROWS) return;
        // Repeats the last identity, because its fences may continue on the next page.
        after = keyBefore(page.at(-1)!.key);
      }
    },
  };
}

/** Returns the key before `key` as hexadecimal digits. */
function keyBefore(key: Buffer): string {
  const preceding = BigInt(`0x${key.toString('hex')}`) - 1n;
  return preceding.toString(16).padStart(2 * key.length, '0');
}
