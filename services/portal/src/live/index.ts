import { type SchemaSource, TOPICS } from '@playline/contracts';
import { type ErasureRecords, openFenceSet, type StoredFence } from '@playline/erasure';
import type { Closable, Logger } from '@playline/runtime';
import type { QueryRows } from '@playline/stores';
import { deadLetterTopicOf, type LogReader } from '@playline/stream';
import { msOf, queryView } from '../reads/query-view.ts';
import { type LiveHub, openLiveHub } from './hub.ts';

export type { OpenFences } from './environment-fences.ts';
export * from './event.ts';
export * from './filter.ts';
export * from './hub.ts';
export { LIVE_LIMITS, type LiveLimits } from './limits.ts';
export type { LiveTopics } from './read-live-record.ts';
export type { Subscriber } from './subscriber.ts';

interface LiveSources {
  /** Closed with the hub; it connects when somebody looks. */
  readonly log: LogReader;
  readonly schemaOf: SchemaSource;
  readonly topicPrefix: string;
  /** Consumer group of the event writer. */
  readonly writerGroup: string;
  /** Asks ClickHouse who is erased, each second, of environments that somebody looks at. */
  readonly query: QueryRows;
  readonly logger: Logger;
}

/** Opens the view of what becomes of messages, over the log and the fences of erased people. */
export function openLive({ log, query, topicPrefix, logger, ...rest }: LiveSources): LiveHub & Closable {
  const warnOf = (sentence: string) => (error: unknown) => logger.warn({ error }, sentence);
  const [messages, rejections] = [topicPrefix + TOPICS.messages.name, topicPrefix + TOPICS.rejections.name];
  const hub = openLiveHub({
    ...rest,
    log,
    topics: { messages, rejections, deadLetters: [deadLetterTopicOf(messages), deadLetterTopicOf(rejections)] },
    openFences: (environmentId) =>
      openFenceSet({
        records: createViewFences(query, environmentId),
        onFault: createReportOnce(warnOf(NO_FENCES)),
      }),
    onFault: warnOf('the log cannot be read for live messages'),
  });
  return {
    subscribe: hub.subscribe.bind(hub),
    get subscribers() {
      return hub.subscribers;
    },
    get held() {
      return hub.held;
    },
    close: async () => {
      await hub.close();
      await log.close();
    },
  };
}

const NO_FENCES = 'the fences of erased people cannot be read: no live message is shown five seconds from then on';

/** The set asks every second: the first fault of a look is told. */
function createReportOnce(tell: (fault: unknown) => void): (fault: unknown) => void {
  let isTold = false;
  return (fault) => {
    if (!isTold) tell(fault);
    isTold = true;
  };
}

/** ClickHouse gives the portal twenty thousand rows of an answer at most. */
const PAGE_ROWS = 10_000;
/** A fence can be read only a moment after the time that it bears, so the last seconds are read once more. */
const REREAD_MS = 60_000;
/** Names what has been read whole, for whoever keeps track of it. */
const READ_WHOLE = 'read whole';

/**
 * The fences of one environment, over a view that asks for it by name: all of them first, and whenever nothing of them is
 * known to the reader, else those that were written since.
 */
function createViewFences(query: QueryRows, environmentId: string): Pick<ErasureRecords, 'readFences'> {
  let newestMs = 0;
  const readPage = (after: string, sinceMs: number, signal?: AbortSignal) =>
    queryView(
      query,
      {
        view: 'portal_fences',
        args: { environment: environmentId, after, since: sinceMs },
        columns: ['identity_id', msOf('cutoff_at'), 'toString(erasure_id)', msOf('fenced_at')],
        tail: 'ORDER BY identity_id',
        rowsMax: PAGE_ROWS,
        toRow: (values) => toFence(environmentId, values),
      },
      signal === undefined ? {} : { signal },
    );
  return {
    readFences: async function* ({ knownParts, signal } = {}) {
      const sinceMs = knownParts?.has(READ_WHOLE) === true ? newestMs - REREAD_MS : 0;
      for (let after = ''; ; ) {
        const page = await readPage(after, Math.max(0, sinceMs), signal);
        for (const fence of page) newestMs = Math.max(newestMs, fence.fencedAtMs);
        yield* page;
        if (page.length < PAGE_ROWS) return;
        // One identity has a few lines at most. The last identity of an answer may lack some: it is read again.
        after = before(page.at(-1)!.key);
      }
    },
  };
}

function toFence(environmentId: string, values: readonly unknown[]): StoredFence {
  const [key, cutoff, erasure, fenced] = values.map(String) as [string, string, string, string];
  return {
    environmentId,
    key: Buffer.from(key, 'hex'),
    cutoffMs: Number(cutoff),
    erasureId: Buffer.from(erasure.replaceAll('-', ''), 'hex'),
    fencedAtMs: Number(fenced),
    part: READ_WHOLE,
  };
}

/** The greatest key below a key, in hexadecimal digits. */
function before(key: Buffer): string {
  const below = BigInt(`0x${key.toString('hex')}`) - 1n;
  return below.toString(16).padStart(2 * key.length, '0');
}
