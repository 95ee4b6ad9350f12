import type { LiveEntry } from './entry.ts';
import { type EndReason, type LiveEvent, toEntryEvent } from './event.ts';
import { type LiveFilter, matchesFilter } from './filter.ts';
import type { WatchState } from './watch.ts';

/** Receives the live events of one environment. */
export interface Subscriber {
  /**
   * Returns the next event, 'timeout' if there is none within `waitMaxMs`, or null after the last event. Calls must not
   * overlap.
   */
  next(waitMaxMs: number): Promise<LiveEvent | 'timeout' | null>;
  close(): void;
}

interface SubscriberParts {
  readonly environmentId: string;
  readonly filter: LiveFilter;
  readonly shouldMask: boolean;
  readonly queueEventsMax: number;
  /** Called immediately before an entry is sent. */
  readonly removeErased: (entry: LiveEntry) => void;
  readonly onClose: () => void;
}

/** A subscriber, with the methods that the hub calls. */
export class HubSubscriber implements Subscriber {
  readonly environmentId: string;
  readonly #parts: SubscriberParts;
  readonly #counts = { seen: 0, shown: 0, lost: 0 };
  #queue: LiveEntry[] = [];
  /** Entries that matched the filter. */
  readonly #states = new WeakMap<LiveEntry, 'queued' | 'sent'>();
  /** Sent entries whose outcome has changed. The buffer size limits their number. */
  readonly #changes = new Set<LiveEntry>();
  #state: WatchState | null = null;
  #initialState: WatchState | null = null;
  #isStatusDue = false;
  #lastStatus = '';
  #endReason: EndReason | null = null;
  #isEndSent = false;
  #isClosed = false;
  #wake: (() => void) | null = null;

  constructor(parts: SubscriberParts) {
    this.#parts = parts;
    this.environmentId = parts.environmentId;
  }

  get #isEnded(): boolean {
    return this.#endReason !== null || this.#isClosed;
  }

  offer(entry: LiveEntry): void {
    this.#counts.seen++;
    this.#enqueue(entry);
  }

  onEntryChange(entry: LiveEntry): void {
    if (this.#isEnded) return;
    const state = this.#states.get(entry);
    // The changed outcome may be the first that matches the filter.
    if (state === undefined) this.#enqueue(entry);
    else if (state === 'sent') {
      this.#changes.add(entry);
      this.#wake?.();
    }
  }

  #enqueue(entry: LiveEntry): void {
    const { filter, shouldMask, queueEventsMax } = this.#parts;
    if (this.#isEnded || !matchesFilter(filter, entry, shouldMask)) return;
    this.#states.set(entry, 'queued');
    this.#queue.push(entry);
    if (this.#queue.length > queueEventsMax) {
      this.#queue.shift();
      this.#counts.lost++;
    }
    this.#wake?.();
  }

  /** Drops all queued entries, because the fences are unavailable. */
  dropQueued(): void {
    this.#counts.lost += this.#queue.length;
    this.#queue = [];
  }

  /** The status counts the records that were read or skipped since the first call. */
  setState(state: WatchState): void {
    this.#initialState ??= state;
    this.#state = state;
    this.#isStatusDue = true;
    this.#wake?.();
  }

  end(reason: EndReason): void {
    if (this.#isEnded) return;
    this.#endReason = reason;
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
    if (this.#endReason !== null) {
      this.#isEndSent = true;
      return { kind: 'end', reason: this.#endReason };
    }
    return this.#nextStatus() ?? this.#nextChange() ?? this.#nextEntry();
  }

  /** The status is sent before entries, so that slow clients see how many events they lost. */
  #nextStatus(): LiveEvent | undefined {
    if (!this.#isStatusDue || this.#state === null || this.#initialState === null) return undefined;
    this.#isStatusDue = false;
    const { isWatching, trouble, read, skipped } = this.#state;
    const share = toFraction(read - this.#initialState.read, skipped - this.#initialState.skipped);
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
    const { position, outcome, reason, storedAt } = entry;
    return { kind: 'outcome', position, outcome, reason, storedAt };
  }

  #nextEntry(): LiveEvent | undefined {
    const entry = this.#queue.shift();
    if (entry === undefined) return undefined;
    this.#parts.removeErased(entry);
    this.#counts.shown++;
    this.#states.set(entry, 'sent');
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
