import type { LiveEntry } from './entry.ts';
import { type EndReason, type LiveEvent, toEntryEvent } from './event.ts';
import { isWanted, type LiveFilter } from './filter.ts';
import type { WatchState } from './watch.ts';

/** Receives live events of one environment. */
export interface Subscriber {
  /**
   * Returns the next event, `timeout` if there is none within `waitMaxMs`, or null after the last event. Calls must not
   * overlap.
   */
  next(waitMaxMs: number): Promise<LiveEvent | 'timeout' | null>;
  close(): void;
}

export interface Slot {
  readonly index: number;
  /** Distinguishes the marks of this subscriber from those of earlier subscribers in the same slot. */
  readonly generation: number;
}

interface SubscriberParts {
  readonly slot: Slot;
  readonly environmentId: string;
  readonly filter: LiveFilter;
  readonly shouldMask: boolean;
  readonly queueEventsMax: number;
  /** Called immediately before an entry is sent. */
  readonly removeErased: (entry: LiveEntry) => void;
  readonly onClose: () => void;
}

/** Delivery state of an entry that matched the filter. */
const QUEUED = 0;
const SENT = 1;
type Mark = typeof QUEUED | typeof SENT;

/** The subscriber as seen by the hub. */
export class HubSubscriber implements Subscriber {
  readonly environmentId: string;
  readonly #parts: SubscriberParts;
  readonly #counts = { seen: 0, shown: 0, lost: 0 };
  #queue: LiveEntry[] = [];
  /** Sent entries with a new outcome. Limited by the size of the buffer. */
  readonly #changes = new Set<LiveEntry>();
  #state: WatchState | null = null;
  #first: WatchState | null = null;
  #isStatusDue = false;
  #lastStatus = '';
  #end: EndReason | null = null;
  #isEndSent = false;
  #isClosed = false;
  #wake: (() => void) | null = null;

  constructor(parts: SubscriberParts) {
    this.#parts = parts;
    this.environmentId = parts.environmentId;
  }

  get #isEnded(): boolean {
    return this.#end !== null || this.#isClosed;
  }

  offer(entry: LiveEntry): void {
    this.#counts.seen++;
    this.#enqueue(entry);
  }

  changed(entry: LiveEntry): void {
    if (this.#isEnded) return;
    const mark = this.#markOf(entry);
    // An outcome filter may match only now.
    if (mark === null) this.#enqueue(entry);
    else if (mark === SENT) {
      this.#changes.add(entry);
      this.#wake?.();
    }
  }

  #enqueue(entry: LiveEntry): void {
    const { filter, shouldMask, queueEventsMax } = this.#parts;
    if (this.#isEnded || !isWanted(filter, entry, shouldMask)) return;
    this.#mark(entry, QUEUED);
    this.#queue.push(entry);
    if (this.#queue.length > queueEventsMax) {
      this.#queue.shift();
      this.#counts.lost++;
    }
    this.#wake?.();
  }

  #mark(entry: LiveEntry, mark: Mark): void {
    const { index, generation } = this.#parts.slot;
    entry.marks[index] = 2 * generation + mark;
  }

  /** Returns null if the entry has not matched the filter yet. */
  #markOf(entry: LiveEntry): Mark | null {
    const { index, generation } = this.#parts.slot;
    const mark = (entry.marks[index] ?? -1) - 2 * generation;
    return mark === QUEUED || mark === SENT ? mark : null;
  }

  /** Drops queued entries when the fences are unavailable. */
  dropQueued(): void {
    this.#counts.lost += this.#queue.length;
    this.#queue = [];
  }

  /** Read and skipped records are counted from the first call. */
  setState(state: WatchState): void {
    this.#first ??= state;
    this.#state = state;
    this.#isStatusDue = true;
    this.#wake?.();
  }

  end(reason: EndReason): void {
    if (this.#isEnded) return;
    this.#end = reason;
    this.#clear();
    this.#parts.onClose();
  }

  close(): void {
    if (this.#isClosed) return;
    const wasEnded = this.#isEnded;
    this.#isClosed = true;
    this.#clear();
    if (!wasEnded) this.#parts.onClose();
  }

  #clear(): void {
    this.#queue = [];
    this.#changes.clear();
    this.#wake?.();
  }

  async next(waitMaxMs: number): Promise<LiveEvent | 'timeout' | null> {
    const deadlineMs = performance.now() + waitMaxMs;
    for (;;) {
      const event = this.#nextEvent();
      if (event !== undefined) return event;
      const remainingMs = deadlineMs - performance.now();
      if (remainingMs <= 0) return 'timeout';
      await this.#waitForWake(remainingMs);
    }
  }

  #nextEvent(): LiveEvent | null | undefined {
    if (this.#isClosed || this.#isEndSent) return null;
    if (this.#end !== null) {
      this.#isEndSent = true;
      return { kind: 'end', reason: this.#end };
    }
    return this.#nextStatus() ?? this.#nextChange() ?? this.#nextEntry();
  }

  /** Sent before entries, so that slow clients see how many events they lost. */
  #nextStatus(): LiveEvent | undefined {
    if (!this.#isStatusDue || this.#state === null || this.#first === null) return undefined;
    this.#isStatusDue = false;
    const { isWatching, trouble, read, skipped } = this.#state;
    const share = toFraction(read - this.#first.read, skipped - this.#first.skipped);
    const status = { kind: 'status', isWatching, trouble, share, ...this.#counts } as const;
    const text = JSON.stringify(status);
    if (text === this.#lastStatus) return undefined;
    this.#lastStatus = text;
    return status;
  }

  #nextChange(): LiveEvent | undefined {
    const [entry] = this.#changes;
    if (entry === undefined) return undefined;
    this.#changes.delete(entry);
    return { kind: 'outcome', position: entry.position, outcome: entry.outcome, reason: entry.reason };
  }

  #nextEntry(): LiveEvent | undefined {
    const entry = this.#queue.shift();
    if (entry === undefined) return undefined;
    this.#parts.removeErased(entry);
    this.#counts.shown++;
    this.#mark(entry, SENT);
    return toEntryEvent(entry, this.#parts.shouldMask);
  }

  #waitForWake(waitMaxMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#wake = null;
        resolve();
      };
      const timer = setTimeout(done, waitMaxMs);
      this.#wake = done;
    });
  }
}

/** Rounds down to hundredths, so that the value does not reveal the traffic of other environments. */
function toFraction(read: number, skipped: number): number {
  if (skipped === 0) return 1;
  return Math.max(0.01, Math.floor((100 * read) / (read + skipped)) / 100);
}
