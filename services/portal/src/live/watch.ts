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
  readonly withdraw: (entry: LiveEntry) => void;
  readonly onState: (state: WatchState) => void;
  /** Drops entries of environments whose erased people are unknown. */
  readonly dropUnknown: () => void;
}

const LOG_UNREADABLE = 'The log cannot be read. This view resumes automatically; messages in between may be missing.';

/** Follows the ends of the topics while there are subscribers. */
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
      setInterval(() => this.#sweep(), limits.sweepMs),
      setInterval(() => this.report(), limits.statusMs),
    ];
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    const { topics, limits, onFault } = this.#parts;
    const { signal } = this.#stop;
    const busy = [topics.messages, topics.rejections];
    const all = [...busy, ...topics.deadLetters];
    let deadLettersMs = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      const begunMs = performance.now();
      try {
        if (!this.#state.isWatching) {
          await this.#poller.begin(all);
          this.#setState(true, '');
        }
        if (this.#parts.areFencesLoaded()) {
          const withDeadLetters = begunMs - deadLettersMs >= limits.deadLettersPollMs;
          if (withDeadLetters) deadLettersMs = begunMs;
          await this.#poll(withDeadLetters ? all : busy);
          await this.#settle();
        }
        this.#setState(true, '');
      } catch (fault) {
        if (signal.aborted) break;
        if (this.#state.trouble !== LOG_UNREADABLE) onFault(fault);
        this.#setState(this.#state.isWatching, LOG_UNREADABLE);
      }
      await pause(limits.pollMs - (performance.now() - begunMs), signal);
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

  /** The writer commits after its write, so what it has committed is stored. */
  async #settle(): Promise<void> {
    const { buffer, log, writerGroup, topics, onChange } = this.#parts;
    const isOpen = ({ outcome, message }: LiveEntry) => outcome === 'accepted' && message !== null;
    if (this.#stop.signal.aborted || ![...buffer.entries()].some(isOpen)) return;
    const committed = await log.committed(writerGroup, topics.messages);
    for (const entry of buffer.entries()) {
      if (!isOpen(entry) || entry.offset >= (committed.get(entry.partition) ?? 0)) continue;
      // The writer also commits fenced messages, without storing them.
      this.#parts.withdraw(entry);
      if (!isOpen(entry)) continue;
      entry.outcome = 'stored';
      onChange(entry);
    }
  }

  #sweep(): void {
    this.#parts.dropUnknown();
    for (const entry of this.#parts.buffer.entries()) this.#parts.withdraw(entry);
  }

  #setState(isWatching: boolean, trouble: string): void {
    const isChanged = isWatching !== this.#state.isWatching || trouble !== this.#state.trouble;
    Object.assign(this.#state, { isWatching, trouble });
    if (isChanged) this.report();
  }

  /** Reports the state now; it is also reported every `statusMs`. */
  report(): void {
    this.#parts.onState({ ...this.#state });
  }

  async close(): Promise<void> {
    this.#stop.abort();
    for (const timer of this.#timers) clearInterval(timer);
    await this.#running;
  }
}

/** Throws instead of sending requests once the signal is aborted. */
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
