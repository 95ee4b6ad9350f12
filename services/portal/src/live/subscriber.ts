import type { LiveEntry } from './entry.ts';
import { type EndReason, type LiveEvent, toEntryEvent } from './event.ts';
import { isWanted, type LiveFilter } from './filter.ts';
import type { WatchState } from './watch.ts';

/** Receives the events of one environment. */
export interface Subscriber {
  /**
   * The next event, null after the last. One call at a time.
   * @param waitMaxMs returns `nothing` when there was none for so long
   */
  next(waitMaxMs: number): Promise<LiveEvent | 'nothing' | null>;
  close(): void;
}

export interface Slot {
  readonly index: number;
  /** Unique, so that marks of the slot's former subscribers do not count. */
  readonly generation: number;
}

interface SubscriberParts {
  readonly slot: Slot;
  readonly environmentId: string;
  readonly filter: LiveFilter;
  readonly masks: boolean;
  readonly queueEventsMax: number;
  /** Removes erased people from an entry immediately before it is sent. */
  readonly withdraw: (entry: LiveEntry) => void;
  readonly onClose: () => void;
}

/** The entry matched the filter, and is not offered again. */
const TAKEN = 0;
const SHOWN = 1;
type Mark = typeof TAKEN | typeof SHOWN;

/** The hub's side of a subscriber. */
export class HubSubscriber implements Subscriber {
  readonly environmentId: string;
  readonly #parts: SubscriberParts;
  readonly #counts = { seen: 0, shown: 0, lost: 0 };
  #queue: LiveEntry[] = [];
  /** Shown entries that have changed since: bounded by the buffer, so none is dropped. */
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
    this.#take(entry);
  }

  changed(entry: LiveEntry): void {
    if (this.#isEnded) return;
    const mark = this.#markOf(entry);
    // A filter by outcome may match only now.
    if (mark === null) this.#take(entry);
    else if (mark === SHOWN) {
      this.#changes.add(entry);
      this.#wake?.();
    }
  }

  #take(entry: LiveEntry): void {
    const { filter, masks, queueEventsMax } = this.#parts;
    if (this.#isEnded || !isWanted(filter, entry, masks)) return;
    this.#mark(entry, TAKEN);
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

  /** Null for an entry that has not matched the filter yet. */
  #markOf(entry: LiveEntry): Mark | null {
    const { index, generation } = this.#parts.slot;
    const mark = (entry.marks[index] ?? -1) - 2 * generation;
    return mark === TAKEN || mark === SHOWN ? mark : null;
  }

  /** Drops queued entries, because it is unknown whether they may be shown. */
  dropQueued(): void {
    this.#counts.lost += this.#queue.length;
    this.#queue = [];
  }

  /** The share of the log counts from the first call. */
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

  async next(waitMaxMs: number): Promise<LiveEvent | 'nothing' | null> {
    const deadlineMs = performance.now() + waitMaxMs;
    for (;;) {
      const event = this.#nextEvent();
      if (event !== undefined) return event;
      const leftMs = deadlineMs - performance.now();
      if (leftMs <= 0) return 'nothing';
      await this.#waitForWake(leftMs);
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

  /** Comes before entries, so that slow clients learn what they lost. */
  #nextStatus(): LiveEvent | undefined {
    if (!this.#isStatusDue || this.#state === null || this.#first === null) return undefined;
    this.#isStatusDue = false;
    const { isWatching, trouble, read, skipped } = this.#state;
    const share = toShare(read - this.#first.read, skipped - this.#first.skipped);
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
    this.#parts.withdraw(entry);
    this.#counts.shown++;
    this.#mark(entry, SHOWN);
    return toEntryEvent(entry, this.#parts.masks);
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

/** Rounded down to hundredths, so that it does not reveal how much other environments send. */
function toShare(read: number, skipped: number): number {
  if (skipped === 0) return 1;
  return Math.max(0.01, Math.floor((100 * read) / (read + skipped)) / 100);
}
