import { pause } from '@playline/stores';
import type { LogReader, StreamRecord } from '@playline/stream';
import type { LiveBuffer } from './buffer.ts';
import type { LiveEntry } from './entry.ts';
import type { LiveStatus } from './event.ts';
import type { LiveLimits } from './limits.ts';
import type { LiveRecord, LiveTopics, ReadLiveRecord } from './read-live-record.ts';

/** The reading of the log while somebody looks. */
export interface Watch {
  /** Tells how the reading goes at once; it is told each second anyway. */
  report(): void;
  /** Asks the brokers nothing from the call on; resolves when what was under way has ended. */
  close(): Promise<void>;
}

/** How the reading goes; numbers count from its beginning. */
export interface WatchState extends Pick<LiveStatus, 'isWatching' | 'trouble'> {
  readonly read: number;
  readonly skipped: number;
}

export interface WatchParts {
  readonly log: Pick<LogReader, 'bounds' | 'read' | 'committed'>;
  readonly topics: LiveTopics;
  readonly writerGroup: string;
  /** Whether it is known who is erased; until then nothing is read. */
  readonly areFencesLoaded: () => boolean;
  readonly limits: LiveLimits;
  readonly buffer: LiveBuffer;
  readonly readLiveRecord: ReadLiveRecord;
  readonly onFault: (fault: unknown) => void;
  readonly onRecord: (finding: LiveRecord) => void;
  readonly onChange: (entry: LiveEntry) => void;
  readonly withdraw: (entry: LiveEntry) => void;
  readonly onState: (state: WatchState) => void;
  /** Forgets what is held and waits where it is not known any more who is erased. */
  readonly dropUnknown: () => void;
}

const LOG_UNREADABLE = 'The log cannot be read. It goes on by itself; what comes meanwhile may be left out.';

/** Begins at the end of the log. */
export function openWatch(parts: WatchParts): Watch {
  return new LogWatch(parts);
}

class LogWatch implements Watch {
  readonly #parts: WatchParts;
  readonly #log: Pick<LogReader, 'bounds' | 'read'>;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  readonly #timers: NodeJS.Timeout[];
  #isWatching = false;
  #trouble = '';
  #read = 0;
  #skipped = 0;

  constructor(parts: WatchParts) {
    this.#parts = parts;
    this.#log = this.#stoppable(parts.log);
    const { sweepMs, statusMs } = parts.limits;
    this.#timers = [setInterval(() => this.#sweep(), sweepMs), setInterval(() => this.report(), statusMs)];
    this.#running = this.#run();
  }

  /** The log, of which nothing is asked any more once nobody looks. */
  #stoppable(log: WatchParts['log']): Pick<LogReader, 'bounds' | 'read'> {
    const assertWanted = () => this.#stop.signal.throwIfAborted();
    return {
      bounds: async (...asked) => {
        assertWanted();
        return log.bounds(...asked);
      },
      read: async function* (range) {
        assertWanted();
        for await (const record of log.read(range)) {
          yield record;
          assertWanted();
        }
      },
    };
  }

  async #run(): Promise<void> {
    const { topics, limits, onFault } = this.#parts;
    const tap = createTopicPoller({ log: this.#log, limits });
    const [busy, letters] = [[topics.messages, topics.rejections], [...topics.deadLetters]];
    let lettersMs = Number.NEGATIVE_INFINITY;
    while (!this.#stop.signal.aborted) {
      const begunMs = performance.now();
      try {
        if (!this.#isWatching) {
          await tap.begin([...busy, ...letters]);
          this.#setState(true, '');
        }
        if (this.#parts.areFencesLoaded()) {
          const isLettersTurn = begunMs - lettersMs >= limits.deadLettersPollMs;
          if (isLettersTurn) lettersMs = begunMs;
          await this.#draw(() => tap.poll(isLettersTurn ? [...busy, ...letters] : busy));
          await this.#settle();
        }
        this.#setState(true, '');
      } catch (fault) {
        if (this.#stop.signal.aborted) break;
        if (this.#trouble !== LOG_UNREADABLE) onFault(fault);
        this.#setState(this.#isWatching, LOG_UNREADABLE);
      }
      await pause(limits.pollMs - (performance.now() - begunMs), this.#stop.signal);
    }
  }

  async #draw(draw: () => ReturnType<ReturnType<typeof createTopicPoller>['poll']>): Promise<void> {
    const { records, skipped } = await draw();
    this.#read += records.length;
    this.#skipped += skipped;
    for (const record of records) {
      const finding = await this.#parts.readLiveRecord(record);
      if (this.#stop.signal.aborted) return;
      if (finding !== null) this.#parts.onRecord(finding);
    }
  }

  /** What the writer has committed is stored: it commits behind the write. */
  async #settle(): Promise<void> {
    const { buffer, log, writerGroup, topics, onChange: changed } = this.#parts;
    const isOpen = ({ fate, message }: LiveEntry) => fate === 'accepted' && message !== null;
    if (this.#stop.signal.aborted || ![...buffer.entries()].some(isOpen)) return;
    const committed = await log.committed(writerGroup, topics.messages);
    for (const entry of buffer.entries()) {
      if (!isOpen(entry) || entry.offset >= (committed.get(entry.partition) ?? 0)) continue;
      // The writer keeps out what is fenced, and commits all the same.
      this.#parts.withdraw(entry);
      if (!isOpen(entry)) continue;
      entry.fate = 'stored';
      changed(entry);
    }
  }

  #sweep(): void {
    this.#parts.dropUnknown();
    for (const entry of this.#parts.buffer.entries()) this.#parts.withdraw(entry);
  }

  #setState(isWatching: boolean, trouble: string): void {
    const isChanged = isWatching !== this.#isWatching || trouble !== this.#trouble;
    this.#isWatching = isWatching;
    this.#trouble = trouble;
    if (isChanged) this.report();
  }

  report(): void {
    const [isWatching, trouble, read, skipped] = [this.#isWatching, this.#trouble, this.#read, this.#skipped];
    this.#parts.onState({ isWatching, trouble, read, skipped });
  }

  async close(): Promise<void> {
    this.#stop.abort();
    for (const timer of this.#timers) clearInterval(timer);
    await this.#running;
  }
}

/** What one look at the log has brought. */
interface Polled {
  /** In the order of their times. */
  readonly records: readonly StreamRecord[];
  /** Records that stood there and were not read. */
  readonly skipped: number;
}

interface TopicPollerParts {
  readonly log: Pick<LogReader, 'bounds' | 'read'>;
  readonly limits: Pick<LiveLimits, 'recordsPerPollMax' | 'bytesPerPollMax'>;
}

/** Reads topics from where they ended when it was made: as part of no group, and leaving no trace. */
interface TopicPoller {
  /** Asks where the topics end, and reads from there on. @throws Error of the brokers; nothing was begun */
  begin(topics: readonly string[]): Promise<void>;
  /** What has come to these topics since; a sample of it when that is more than may be read. @throws Error of the brokers */
  poll(topics: readonly string[]): Promise<Polled>;
}

/** One partition with something to read. */
interface Waiting {
  readonly topic: string;
  readonly partition: number;
  readonly start: number;
  readonly end: number;
}

function createTopicPoller({ log, limits }: TopicPollerParts): TopicPoller {
  const places = new Map<string, number[]>();

  const look = async (topic: string): Promise<Waiting[]> => {
    const bounds = await log.bounds(topic);
    const read = places.get(topic);
    // A partition that was added later is read from its start. A log that has lost its end is read on from where it ends now.
    const toStart = ({ partition, start, end }: (typeof bounds)[number]) =>
      read === undefined ? end : Math.min(end, Math.max(start, read[partition] ?? start));
    return bounds.map((each) => ({ topic, partition: each.partition, start: toStart(each), end: each.end }));
  };
  const moveTo = (waiting: readonly Waiting[]) => {
    for (const { topic, partition, end } of waiting) {
      const ends = places.get(topic) ?? [];
      ends[partition] = end;
      places.set(topic, ends);
    }
  };
  return {
    async begin(topics) {
      moveTo((await Promise.all(topics.map(look))).flat());
    },
    async poll(topics) {
      const waiting = (await Promise.all(topics.map(look))).flat().filter(({ start, end }) => end > start);
      const counts = waiting.map(({ start, end }) => end - start);
      const quotas = toQuotas(counts, limits.recordsPerPollMax);
      const bytesMax = Math.floor(limits.bytesPerPollMax / Math.max(1, waiting.length));
      const read = await Promise.all(
        waiting.map((each, index) => readNewest(log, each, { records: quotas[index]!, bytes: bytesMax })),
      );
      moveTo(waiting);
      const records = read.flat().sort((a, b) => a.timestampMs - b.timestampMs);
      return { records, skipped: Math.max(0, counts.reduce((sum, count) => sum + count, 0) - records.length) };
    },
  };
}

/** The newest records of a partition; fewer where they are large. */
async function readNewest(
  log: TopicPollerParts['log'],
  { topic, partition, end, start }: Waiting,
  most: { records: number; bytes: number },
): Promise<StreamRecord[]> {
  const taken: StreamRecord[] = [];
  if (most.records === 0) return taken;
  let bytes = 0;
  for await (const record of log.read({ topic, partition, start: Math.max(start, end - most.records), end })) {
    bytes += (record.value?.length ?? 0) + (record.key?.length ?? 0);
    taken.push(record);
    if (bytes >= most.bytes) break;
  }
  return taken;
}

/**
 * How many of each partition's waiting records are read: all while there is room for all, else as evenly as they wait, so that
 * none is left out because another one is busy.
 * @returns as many numbers, none larger than what waits, which together fill the room
 */
export function toQuotas(waiting: readonly number[], room: number): number[] {
  const quotas = waiting.map(() => 0);
  let left = room;
  // The partition with the fewest records comes first: room that it does not need goes to the next ones.
  const order = waiting.map((_, index) => index).sort((a, b) => waiting[a]! - waiting[b]!);
  for (const [at, index] of order.entries()) {
    const even = Math.floor(left / (order.length - at));
    quotas[index] = Math.min(waiting[index]!, even);
    left -= quotas[index]!;
  }
  return quotas;
}
