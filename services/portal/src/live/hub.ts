/** Serves all subscribers of Live with one reader of the log. */
import type { SchemaSource } from '@playline/contracts';
import type { FenceSet } from '@playline/erasure';
import { PublicError } from '@playline/errors';
import type { LogReader } from '@playline/stream';
import { createBuffer, type LiveBuffer } from './buffer.ts';
import type { LiveEntry } from './entry.ts';
import type { EndReason } from './event.ts';
import type { LiveFilter } from './filter.ts';
import { LIVE_LIMITS, type LiveLimits } from './limits.ts';
import { createReadLiveRecord, type LiveRecord, type LiveTopics } from './read-live-record.ts';
import { HubSubscriber, type Slot, type Subscriber } from './subscriber.ts';
import { LogWatch } from './watch.ts';

export interface Subscription {
  readonly environmentId: string;
  readonly filter: LiveFilter;
  readonly masks: boolean;
  /** Called twice a second. Anything but true, a fault and a timeout end the subscription. */
  isStillAllowed(): boolean | Promise<boolean>;
}

export interface LiveHub {
  /** The caller closes the subscriber. @throws PublicError TOO_MANY_REQUESTS_ERROR beyond `subscribersMax` */
  subscribe(subscription: Subscription): Subscriber;
  readonly subscribers: number;
  readonly held: { readonly entries: number; readonly bytes: number };
  close(): Promise<void>;
}

export interface LiveParts {
  readonly log: Pick<LogReader, 'bounds' | 'read' | 'committed'>;
  readonly topics: LiveTopics;
  readonly schemaOf: SchemaSource;
  /** Consumer group of the event writer: what it has committed is stored. */
  readonly writerGroup: string;
  readonly openFences: OpenFences;
  readonly onFault: (fault: unknown) => void;
  readonly limits?: LiveLimits;
}

/** The fences of erased people of one environment, refreshed until closed. */
type OpenFences = (environmentId: string) => FenceSet & { close(): Promise<void> };

const RETRY_AFTER_S = 10;
const TOO_MANY_SUBSCRIBERS = 'This portal has reached its limit of live pages. Close a tab, or try again.';

/** Reads nothing while there are no subscribers. */
export function openLiveHub(parts: LiveParts): LiveHub {
  return new SharedHub(parts);
}

class SharedHub implements LiveHub {
  readonly #parts: LiveParts;
  readonly #limits: LiveLimits;
  readonly #subscribers = createSubscribers();
  readonly #slots = createSlots();
  readonly #buffer: LiveBuffer;
  readonly #fences: ReturnType<typeof createEnvironmentFences>;
  #watch: LogWatch | null = null;
  #ended: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(parts: LiveParts) {
    this.#parts = parts;
    this.#limits = parts.limits ?? LIVE_LIMITS;
    this.#buffer = createBuffer(this.#limits);
    this.#fences = createEnvironmentFences(parts.openFences);
  }

  get subscribers(): number {
    return this.#subscribers.count;
  }

  get held(): LiveHub['held'] {
    return { entries: this.#buffer.size, bytes: this.#buffer.bytes };
  }

  subscribe({ environmentId, filter, masks, isStillAllowed }: Subscription): Subscriber {
    const { subscribersMax, queueEventsMax, permissionMs } = this.#limits;
    if (this.#isClosed || this.#subscribers.count >= subscribersMax)
      throw new PublicError('TOO_MANY_REQUESTS_ERROR', { message: TOO_MANY_SUBSCRIBERS, retryAfterS: RETRY_AFTER_S });
    const slot = this.#slots.take();
    const onClose = () => {
      stopChecks();
      this.#slots.free(slot);
      this.#leave(subscriber);
    };
    const withdraw = (entry: LiveEntry) => this.#withdraw(entry);
    const subscriber = new HubSubscriber({ slot, environmentId, filter, masks, queueEventsMax, withdraw, onClose });
    const stopChecks = checkPermission(isStillAllowed, permissionMs, (reason) => subscriber.end(reason));
    this.#fences.enter(environmentId);
    this.#subscribers.add(subscriber);
    this.#watch ??= this.#openWatch();
    this.#watch.report();
    return subscriber;
  }

  #openWatch(): LogWatch {
    return new LogWatch({
      ...this.#parts,
      limits: this.#limits,
      buffer: this.#buffer,
      readLiveRecord: createReadLiveRecord({ ...this.#parts, limits: this.#limits }),
      onRecord: (record) => this.#onRecord(record),
      onChange: (entry) => this.#onChange(entry),
      withdraw: (entry) => this.#withdraw(entry),
      onState: (state) => {
        for (const subscriber of this.#subscribers.all()) {
          const { isKnown, trouble } = this.#fences.stateOf(subscriber.environmentId);
          const isWatching = state.isWatching && isKnown;
          subscriber.setState({ ...state, isWatching, trouble: trouble || state.trouble });
        }
      },
      areFencesLoaded: () => this.#fences.unknown().length === 0,
      dropUnknown: () => {
        for (const environmentId of this.#fences.unknown()) {
          this.#buffer.clear(environmentId);
          for (const subscriber of this.#subscribers.of(environmentId)) subscriber.dropQueued();
        }
      },
    });
  }

  #leave(subscriber: HubSubscriber): void {
    if (!this.#subscribers.remove(subscriber)) return;
    const { environmentId } = subscriber;
    if (this.#subscribers.of(environmentId).length === 0) {
      this.#buffer.clear(environmentId);
      this.#ended = Promise.all([this.#ended, this.#fences.leave(environmentId)]);
    }
    if (this.#subscribers.count > 0 || this.#watch === null) return;
    this.#ended = Promise.all([this.#ended, this.#watch.close()]);
    this.#watch = null;
  }

  #onRecord(record: LiveRecord): void {
    const stored = record.kind === 'dead letter' ? this.#buffer.find(record.position) : undefined;
    if (record.kind === 'dead letter' && stored !== undefined) {
      stored.outcome = 'dead-lettered';
      stored.reason = record.reason;
      this.#onChange(stored);
    } else if (record.entry !== null) this.#offer(record.entry);
  }

  #offer(entry: LiveEntry): void {
    const interested = this.#subscribers.of(entry.environmentId);
    const fences = this.#fences.of(entry.environmentId);
    if (interested.length === 0 || fences === undefined) return;
    withdrawErased(entry, fences);
    this.#buffer.add(entry);
    for (const subscriber of interested) subscriber.offer(entry);
  }

  #withdraw(entry: LiveEntry): void {
    const fences = this.#fences.of(entry.environmentId);
    if (fences !== undefined && withdrawErased(entry, fences)) this.#onChange(entry);
  }

  #onChange(entry: LiveEntry): void {
    for (const subscriber of this.#subscribers.of(entry.environmentId)) subscriber.changed(entry);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const subscriber of this.#subscribers.all()) subscriber.end('closed');
    await this.#ended;
  }
}

interface OpenSet {
  readonly set: ReturnType<OpenFences>;
  readonly openedMs: number;
  wasLoaded: boolean;
}

/** A first read takes milliseconds; longer than this counts as an outage. */
const FIRST_READ_MS = 5_000;
const FENCES_UNREADABLE =
  'The list of erased people cannot be read, so no messages are shown. This view resumes automatically.';

function createEnvironmentFences(openFences: OpenFences) {
  const sets = new Map<string, OpenSet>();
  const isLoaded = (fences: OpenSet) => {
    const { loaded } = fences.set;
    if (loaded) fences.wasLoaded = true;
    return loaded;
  };
  return {
    enter(environmentId: string): void {
      if (sets.has(environmentId)) return;
      sets.set(environmentId, { set: openFences(environmentId), openedMs: performance.now(), wasLoaded: false });
    },
    async leave(environmentId: string): Promise<void> {
      const closing = sets.get(environmentId);
      sets.delete(environmentId);
      await closing?.set.close();
    },
    of: (environmentId: string) => sets.get(environmentId)?.set,
    /** Environments whose erased people are unknown. While there are any, the log is not read. */
    unknown: () => [...sets].filter(([, fences]) => !isLoaded(fences)).map(([id]) => id),
    stateOf(environmentId: string) {
      const fences = sets.get(environmentId);
      if (fences === undefined || isLoaded(fences)) return { isKnown: true, trouble: '' };
      const isLate = fences.wasLoaded || performance.now() - fences.openedMs > FIRST_READ_MS;
      return { isKnown: false, trouble: isLate ? FENCES_UNREADABLE : '' };
    },
  };
}

/** Gives the lowest free index, so that `marks` of an entry are no longer than the number of subscribers. */
function createSlots() {
  const taken = new Set<number>();
  let generations = 0;
  return {
    take(): Slot {
      let index = 0;
      while (taken.has(index)) index++;
      taken.add(index);
      return { index, generation: generations++ };
    },
    free: ({ index }: Slot): void => void taken.delete(index),
  };
}

function createSubscribers() {
  const byEnvironment = new Map<string, Set<HubSubscriber>>();
  let count = 0;
  return {
    get count() {
      return count;
    },
    add(subscriber: HubSubscriber): void {
      const own = byEnvironment.get(subscriber.environmentId) ?? new Set();
      byEnvironment.set(subscriber.environmentId, own.add(subscriber));
      count++;
    },
    remove(subscriber: HubSubscriber): boolean {
      const own = byEnvironment.get(subscriber.environmentId);
      if (own?.delete(subscriber) !== true) return false;
      if (own.size === 0) byEnvironment.delete(subscriber.environmentId);
      count--;
      return true;
    },
    of: (environmentId: string): HubSubscriber[] => [...(byEnvironment.get(environmentId) ?? [])],
    all: (): HubSubscriber[] => [...byEnvironment.values()].flatMap((own) => [...own]),
  };
}

/**
 * Removes erased people from an entry by the rule of the event writer: the whole content if it is about one of them, else
 * only the anonymous id.
 * @returns whether the content was removed now
 */
function withdrawErased(entry: LiveEntry, fences: Pick<FenceSet, 'isFenced'>): boolean {
  const { message, environmentId } = entry;
  if (message === null) return false;
  const times = { eventTimeMs: message.eventTime, receivedAtMs: entry.receivedAt };
  const isErased = (key: string) => fences.isFenced({ environmentId, key: Buffer.from(key, 'hex'), ...times });
  if (message.ownKeys.some(isErased)) {
    entry.message = null;
    entry.outcome = 'fenced';
    entry.reason = '';
    return true;
  }
  if (message.anonymousKey !== '' && isErased(message.anonymousKey)) {
    const { anonymousId: _, ...ids } = message.ids;
    entry.message = { ...message, ids, anonymousKey: '' };
  }
  return false;
}

/** Checks at an interval, which is also the timeout of a check. @returns a call that stops the checks */
function checkPermission(
  isStillAllowed: Subscription['isStillAllowed'],
  everyMs: number,
  onEnd: (reason: EndReason) => void,
): () => void {
  let isRunning = false;
  let isStopped = false;
  const stop = () => {
    isStopped = true;
    clearInterval(timer);
  };
  const end = (reason: EndReason) => {
    if (isStopped) return;
    stop();
    onEnd(reason);
  };
  const check = async () => {
    if (isRunning) return end('permission unknown');
    isRunning = true;
    try {
      if ((await isStillAllowed()) !== true) end('not allowed any more');
      isRunning = false;
    } catch {
      end('permission unknown');
    }
  };
  const timer = setInterval(check, everyMs);
  return stop;
}
