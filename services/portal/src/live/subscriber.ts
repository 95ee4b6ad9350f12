import type { LiveEntry } from './entry.ts';
import { type EndReason, type LiveEvent, toEntryEvent } from './event.ts';
import { isWanted, type LiveFilter } from './filter.ts';
import type { WatchState } from './watch.ts';

/** Somebody who looks at one environment. */
export interface Subscriber {
  /**
   * The next event; null once all is told and nothing more comes. One call at a time.
   * @param waitMaxMs gives `nothing` when there was none for so long
   */
  next(waitMaxMs: number): Promise<LiveEvent | 'nothing' | null>;
  close(): void;
}

/** What the hub does with a looker. */
export interface HubSubscriber extends Subscriber {
  readonly environmentId: string;
  readonly isEnded: boolean;
  /** A record of the environment that was read. */
  offer(entry: LiveEntry): void;
  /** An entry that was offered, and is another now. */
  changed(entry: LiveEntry): void;
  /** Drops what waits to be told: nobody can say whether it may be. */
  dropQueued(): void;
  /** The first call says from where on this looker counts. */
  setState(state: WatchState): void;
  end(reason: EndReason): void;
}

/** The place of a looker in the marks of entries. */
export interface Slot {
  /** From 0 on; taken again by somebody else once it is free. */
  readonly index: number;
  /** Number of this look, counted over all looks: tells its marks from those of whoever had the same seat before. */
  readonly generation: number;
}

export interface SubscriberParts {
  readonly slot: Slot;
  readonly environmentId: string;
  readonly filter: LiveFilter;
  /** Whether it sees no raw ids. */
  readonly masks: boolean;
  readonly queueEventsMax: number;
  /** Looks at an entry once more right before it is told. */
  readonly withdraw: (entry: LiveEntry) => void;
  readonly onClose: () => void;
}

/** The filter has let this entry through: it was told, waits to be told, or was dropped, and is not offered again. */
const TAKEN = 0;
/** This entry was told. */
const SHOWN = 1;
type Mark = typeof TAKEN | typeof SHOWN;

export function openSubscriber(parts: SubscriberParts): HubSubscriber {
  return new QueuedSubscriber(parts);
}

class QueuedSubscriber implements HubSubscriber {
  readonly environmentId: string;
  readonly #parts: SubscriberParts;
  /** Entries are told as they are when it is their turn, not as they were. */
  #entries: LiveEntry[] = [];
  /** Of those that were told, what has changed since: not more than the buffer holds, and none is dropped. */
  #changed = new Set<LiveEntry>();
  readonly #counts = { seen: 0, shown: 0, lost: 0 };
  #state: WatchState | null = null;
  #began: Pick<WatchState, 'read' | 'skipped'> | null = null;
  #isStatusDue = false;
  #told = '';
  #end: EndReason | null = null;
  #isEndTold = false;
  #isClosed = false;
  #wake: (() => void) | null = null;

  constructor(parts: SubscriberParts) {
    this.#parts = parts;
    this.environmentId = parts.environmentId;
  }

  get isEnded(): boolean {
    return this.#end !== null || this.#isClosed;
  }

  offer(entry: LiveEntry): void {
    this.#counts.seen++;
    this.#take(entry);
  }

  changed(entry: LiveEntry): void {
    if (this.isEnded) return;
    // A filter for a fate may want it from now on.
    const mark = this.#markOf(entry);
    if (mark === null) this.#take(entry);
    else if (mark === SHOWN) {
      this.#changed.add(entry);
      this.#wake?.();
    }
  }

  #take(entry: LiveEntry): void {
    if (this.isEnded || !isWanted(this.#parts.filter, entry, this.#parts.masks)) return;
    this.#mark(entry, TAKEN);
    this.#entries.push(entry);
    if (this.#entries.length > this.#parts.queueEventsMax) {
      this.#entries.shift();
      this.#counts.lost++;
    }
    this.#wake?.();
  }

  #mark(entry: LiveEntry, mark: Mark): void {
    const { index, generation: look } = this.#parts.slot;
    entry.marks[index] = 2 * look + mark;
  }

  /** Null for an entry that the filter has not let through yet. */
  #markOf(entry: LiveEntry): Mark | null {
    const { index, generation: look } = this.#parts.slot;
    const mark = (entry.marks[index] ?? -1) - 2 * look;
    return mark === TAKEN || mark === SHOWN ? mark : null;
  }

  dropQueued(): void {
    this.#counts.lost += this.#entries.length;
    this.#entries = [];
  }

  setState(state: WatchState): void {
    this.#began ??= state;
    this.#state = state;
    this.#isStatusDue = true;
    this.#wake?.();
  }

  end(reason: EndReason): void {
    if (this.isEnded) return;
    this.#end = reason;
    this.#forget();
    this.#parts.onClose();
  }

  close(): void {
    if (this.#isClosed) return;
    const wasEnded = this.isEnded;
    this.#isClosed = true;
    this.#forget();
    if (!wasEnded) this.#parts.onClose();
  }

  #forget(): void {
    this.#entries = [];
    this.#changed.clear();
    this.#wake?.();
  }

  async next(waitMaxMs: number): Promise<LiveEvent | 'nothing' | null> {
    const deadlineMs = performance.now() + waitMaxMs;
    for (;;) {
      const event = this.#nextNow();
      if (event !== undefined) return event;
      const leftMs = deadlineMs - performance.now();
      if (leftMs <= 0) return 'nothing';
      await this.#somethingOr(leftMs);
    }
  }

  /** Undefined while there is nothing to tell. */
  #nextNow(): LiveEvent | null | undefined {
    if (this.#isClosed || this.#isEndTold) return null;
    if (this.#end !== null) {
      this.#isEndTold = true;
      return { kind: 'end', reason: this.#end };
    }
    return this.#nextStatus() ?? this.#nextChange() ?? this.#nextEntry();
  }

  /** Goes out in front of entries, so that whoever does not keep up learns it. */
  #nextStatus(): LiveEvent | undefined {
    if (!this.#isStatusDue || this.#state === null || this.#began === null) return undefined;
    this.#isStatusDue = false;
    const { isWatching, trouble, read, skipped } = this.#state;
    const share = toShare(read - this.#began.read, skipped - this.#began.skipped);
    const status = { kind: 'status', isWatching, trouble, share, ...this.#counts } as const;
    const text = JSON.stringify(status);
    if (text === this.#told) return undefined;
    this.#told = text;
    return status;
  }

  #nextChange(): LiveEvent | undefined {
    const [entry] = this.#changed;
    if (entry === undefined) return undefined;
    this.#changed.delete(entry);
    return { kind: 'fate', place: entry.place, fate: entry.fate, reason: entry.reason };
  }

  #nextEntry(): LiveEvent | undefined {
    const entry = this.#entries.shift();
    if (entry === undefined) return undefined;
    this.#parts.withdraw(entry);
    this.#counts.shown++;
    this.#mark(entry, SHOWN);
    return toEntryEvent(entry, this.#parts.masks);
  }

  #somethingOr(waitMaxMs: number): Promise<void> {
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

/** Rounded down to hundredths, so that nobody can work out how much other environments send. */
function toShare(read: number, skipped: number): number {
  if (skipped === 0) return 1;
  return Math.max(0.01, Math.floor((100 * read) / (read + skipped)) / 100);
}
