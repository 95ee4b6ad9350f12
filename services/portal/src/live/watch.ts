import { pause } from '@playline/stores';
import type { LogReader } from '@playline/stream';
import type { LiveBuffer } from './buffer.ts';
import type { LiveEntry } from './entry.ts';
import type { LiveStatus } from './event.ts';
import type { LiveLimits } from './limits.ts';
import type { LiveRecord, LiveTopics, ReadLiveRecord } from './read-live-record.ts';
import { createTopicPoller, type TopicPoller } from './topic-poller.ts';

export interface WatchState extends Pick<LiveStatus, 'isWatching' | 'trouble'> {
  readonly read: number;
  readonly skipped: number;
}

interface WatchParts {
  readonly log: Pick<LogReader, 'bounds' | 'read' | 'committed'>;
  readonly topics: LiveTopics;
  readonly writerGroup: string;
  readonly areFencesLoaded: () => boolean;
  readonly limits: LiveLimits;
  readonly buffer: LiveBuffer;
  readonly readLiveRecord: ReadLiveRecord;
  readonly onFault: (fault: unknown) => void;
  readonly onRecord: (record: LiveRecord) => void;
  readonly onChange: (entry: LiveEntry) => void;
  readonly removeErased: (entry: LiveEntry) => void;
  readonly onState: (state: WatchState) => void;
  /** Drops the entries of environments whose fences are not loaded. */
  readonly dropUnfenced: () => void;
}

const LOG_UNREADABLE = 'Kafka cannot be read. This view resumes automatically, but some messages may be missing.';

/** Polls the topics while there are subscribers. */
export class LogWatch {
  readonly #parts: WatchParts;
  readonly #stop = new AbortController();
  readonly #poller: TopicPoller;
  readonly #running: Promise<void>;
  readonly #timers: NodeJS.Timeout[];
  readonly #state = { isWatching: false, trouble: '', read: 0, skipped: 0 };

  constructor(parts: WatchParts) {
    this.#parts = parts;
    const { log, limits } = parts;
    this.#poller = createTopicPoller(createStoppableLog(log, this.#stop.signal), limits);
    this.#timers = [
      setInterval(() => this.#applyFences(), limits.fenceCheckMs),
      setInterval(() => this.report(), limits.statusMs),
    ];
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    const { topics, limits, onFault } = this.#parts;
    const { signal } = this.#stop;
    const mainTopics = [topics.messages, topics.rejections];
    const allTopics = [...mainTopics, ...topics.deadLetters];
    let deadLettersMs = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      const startedMs = performance.now();
      try {
        if (!this.#state.isWatching) {
          await this.#poller.begin(allTopics);
          this.#setState(true, '');
        }
        if (this.#parts.areFencesLoaded()) {
          const isDeadLetterPoll = startedMs - deadLettersMs >= limits.deadLettersPollMs;
          if (isDeadLetterPoll) deadLettersMs = startedMs;
          await this.#poll(isDeadLetterPoll ? allTopics : mainTopics);
          await this.#updateStored();
        }
        this.#setState(true, '');
      } catch (fault) {
        if (signal.aborted) break;
        if (this.#state.trouble !== LOG_UNREADABLE) onFault(fault);
        this.#setState(this.#state.isWatching, LOG_UNREADABLE);
      }
      await pause(limits.pollMs - (performance.now() - startedMs), signal);
    }
  }

  async #poll(topics: readonly string[]): Promise<void> {
    const { records, skipped } = await this.#poller.poll(topics);
    this.#state.read += records.length;
    this.#state.skipped += skipped;
    for (const record of records) {
      const liveRecord = await this.#parts.readLiveRecord(record);
      if (this.#stop.signal.aborted) return;
      if (liveRecord !== null) this.#parts.onRecord(liveRecord);
    }
  }

  /** Sets the outcome of committed messages to `stored`, because the event writer stores messages before it commits. */
  async #updateStored(): Promise<void> {
    const { buffer, log, writerGroup, topics, onChange } = this.#parts;
    const isUnsettled = ({ outcome, message }: LiveEntry) => outcome === 'accepted' && message !== null;
    if (this.#stop.signal.aborted || ![...buffer.entries()].some(isUnsettled)) return;
    const committed = await log.committed(writerGroup, topics.messages);
    for (const entry of buffer.entries()) {
      if (!isUnsettled(entry) || entry.offset >= (committed.get(entry.partition) ?? 0)) continue;
      // The event writer commits fenced messages without storing them.
      this.#parts.removeErased(entry);
      if (!isUnsettled(entry)) continue;
      entry.outcome = 'stored';
      entry.storedAt = Date.now();
      onChange(entry);
    }
  }

  #applyFences(): void {
    this.#parts.dropUnfenced();
    for (const entry of this.#parts.buffer.entries()) this.#parts.removeErased(entry);
  }

  #setState(isWatching: boolean, trouble: string): void {
    const isChanged = isWatching !== this.#state.isWatching || trouble !== this.#state.trouble;
    Object.assign(this.#state, { isWatching, trouble });
    if (isChanged) this.report();
  }

  /** Reports the state immediately. The state is also reported every `statusMs`. */
  report(): void {
    this.#parts.onState({ ...this.#state });
  }

  async close(): Promise<void> {
    this.#stop.abort();
    for (const timer of this.#timers) clearInterval(timer);
    await this.#running;
  }
}

/** Once the signal is aborted, throws instead of sending requests. */
function createStoppableLog(log: WatchParts['log'], signal: AbortSignal): Pick<LogReader, 'bounds' | 'read'> {
  return {
    bounds: async (...args) => {
      signal.throwIfAborted();
      return log.bounds(...args);
    },
    read: async function* (range) {
      signal.throwIfAborted();
      for await (const record of log.read(range)) {
        yield record;
        signal.throwIfAborted();
      }
    },
  };
}
