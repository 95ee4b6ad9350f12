/** Live messages over the log and the fences of erased people. */
import { type SchemaSource, TOPICS } from '@playline/contracts';
import { type ErasureRecords, openFenceSet, type StoredFence } from '@playline/erasure';
import type { Closable, Logger } from '@playline/runtime';
import type { QueryRows } from '@playline/stores';
import { deadLetterTopicOf, type LogReader } from '@playline/stream';
import { millis, queryView, text } from '../reads/query-view.ts';
import { type LiveHub, openLiveHub } from './hub.ts';

export * from './event.ts';
export * from './filter.ts';
export * from './hub.ts';
export type { Subscriber } from './subscriber.ts';

interface LiveSources {
  /** Closed with the hub. */
  readonly log: LogReader;
  readonly schemaOf: SchemaSource;
  readonly topicPrefix: string;
  /** Consumer group of the event writer. */
  readonly writerGroup: string;
  /** Reads every second who is erased in environments with subscribers. */
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
          // Read every second: only the first fault is logged.
          if (!wasReported) logger.warn({ error }, 'fences unreadable, live messages are hidden after five seconds');
          wasReported = true;
        },
      });
    },
    onFault: (error) => logger.warn({ error }, 'log unreadable for live messages'),
  });
  const closeHub = hub.close.bind(hub);
  return Object.assign(hub, {
    close: async () => {
      await closeHub();
      await log.close();
    },
  });
}

/** Below the limit of 20,000 rows of the account. */
const PAGE_ROWS = 10_000;
/** A fence becomes readable after the time that it bears, so the last minute is read again. */
const REREAD_MS = 60_000;
/** The only part of these fences. */
const READ_WHOLE = 'read whole';

/** Reads all fences of an environment first, and whenever the reader knows none, else those written since. */
function createViewFences(query: QueryRows, environmentId: string): Pick<ErasureRecords, 'readFences'> {
  let newestMs = 0;
  return {
    readFences: async function* ({ knownParts, signal } = {}) {
      const sinceMs = knownParts?.has(READ_WHOLE) === true ? newestMs - REREAD_MS : 0;
      for (let after = ''; ; ) {
        const page = await queryView(
          query,
          {
            view: 'portal_fences',
            args: { environment: environmentId, after, since: Math.max(0, sinceMs) },
            columns: {
              key: { sql: 'identity_id', read: (value: unknown) => Buffer.from(String(value), 'hex') },
              cutoffMs: millis('cutoff_at'),
              erasureId: text('toString(erasure_id)'),
              fencedAtMs: millis('fenced_at'),
            },
            tail: 'ORDER BY identity_id',
            rowsMax: PAGE_ROWS,
          },
          signal === undefined ? {} : { signal },
        );
        for (const { erasureId, ...fence } of page) {
          newestMs = Math.max(newestMs, fence.fencedAtMs);
          const id = Buffer.from(erasureId.replaceAll('-', ''), 'hex');
          yield { ...fence, environmentId, erasureId: id, part: READ_WHOLE } satisfies StoredFence;
        }
        if (page.length < PAGE_ROWS) return;
        // The last identity of a page may lack some of its few lines: it is read again.
        after = keyBefore(page.at(-1)!.key);
      }
    },
  };
}

/** The greatest key below a key, in hexadecimal digits. */
function keyBefore(key: Buffer): string {
  const below = BigInt(`0x${key.toString('hex')}`) - 1n;
  return below.toString(16).padStart(2 * key.length, '0');
}
