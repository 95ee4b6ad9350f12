/** Reads Kafka once for all Live subscribers. */
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
import { HubSubscriber, type Subscriber } from './subscriber.ts';
import { LogWatch } from './watch.ts';

export interface Subscription {
  readonly environmentId: string;
  readonly filter: LiveFilter;
  readonly shouldMask: boolean;
  /** Called twice a second. The subscription ends if the result is not true. */
  isStillAllowed(): boolean | Promise<boolean>;
}

export type LiveHub = Pick<SharedHub, 'subscribe' | 'subscribers' | 'buffered' | 'close'>;

export interface LiveParts {
  readonly log: Pick<LogReader, 'bounds' | 'read' | 'committed'>;
  readonly topics: LiveTopics;
  readonly schemaOf: SchemaSource;
  /** Consumer group of the event writer, which commits a message after storing it. */
  readonly writerGroup: string;
  readonly openFences: OpenFences;
  readonly onFault: (fault: unknown) => void;
  readonly limits?: LiveLimits;
}

/** Opens the fences of an environment and refreshes them until they are closed. */
type OpenFences = (environmentId: string) => FenceSet & { close(): Promise<void> };

const RETRY_AFTER_S = 10;
const TOO_MANY_SUBSCRIBERS = 'This portal has reached its limit for live pages. Close a tab or try again later.';

/** Opens a hub that reads from Kafka only while it has subscribers. */
export function openLiveHub(parts: LiveParts): LiveHub {
  return new SharedHub(parts);
}

class SharedHub {
  readonly #parts: LiveParts;
  readonly #limits: LiveLimits;
  readonly #subscribers = new Set<HubSubscriber>();
  readonly #buffer: LiveBuffer;
  readonly #fences: ReturnType<typeof createEnvironmentFences>;
  #watch: LogWatch | null = null;
  #closing: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(parts: LiveParts) {
    this.#parts = parts;
    this.#limits = parts.limits ?? LIVE_LIMITS;
    this.#buffer = createBuffer(this.#limits);
    this.#fences = createEnvironmentFences(parts.openFences);
  }

  get subscribers(): number {
    return this.#subscribers.size;
  }

  get buffered() {
    return { entries: this.#buffer.size, bytes: this.#buffer.bytes };
  }

  /** The caller must close the subscriber. @throws PublicError TOO_MANY_REQUESTS_ERROR at `subscribersMax` */
  subscribe({ environmentId, filter, shouldMask, isStillAllowed }: Subscription): Subscriber {
    const { subscribersMax, queueEventsMax, permissionMs } = this.#limits;
    if (this.#isClosed || this.#subscribers.size >= subscribersMax)
      throw new PublicError('TOO_MANY_REQUESTS_ERROR', { message: TOO_MANY_SUBSCRIBERS, retryAfterS: RETRY_AFTER_S });
    const onClose = () => {
      stopChecks();
      this.#leave(subscriber);
    };
    const removeErased = (entry: LiveEntry) => this.#removeErased(entry);
    const options = { environmentId, filter, shouldMask, queueEventsMax, removeErased, onClose };
    const subscriber = new HubSubscriber(options);
    const stopChecks = checkPermission(isStillAllowed, permissionMs, (reason) => subscriber.end(reason));
    this.#fences.enter(environmentId);
    this.#subscribers.add(subscriber);
    this.#watch ??= this.#openWatch();
    this.#watch.report();
    return subscriber;
  }

  #subscribersOf(environmentId: string): HubSubscriber[] {
    return [...this.#subscribers].filter((each) => each.environmentId === environmentId);
  }

  #openWatch(): LogWatch {
    return new LogWatch({
      ...this.#parts,
      limits: this.#limits,
      buffer: this.#buffer,
      readLiveRecord: createReadLiveRecord({ ...this.#parts, limits: this.#limits }),
      onRecord: (record) => this.#onRecord(record),
      onChange: (entry) => this.#onChange(entry),
      removeErased: (entry) => this.#removeErased(entry),
      onState: (state) => {
        for (const subscriber of this.#subscribers) {
          const { isKnown, trouble } = this.#fences.stateOf(subscriber.environmentId);
          const isWatching = state.isWatching && isKnown;
          subscriber.setState({ ...state, isWatching, trouble: trouble || state.trouble });
        }
      },
      areFencesLoaded: () => this.#fences.notLoaded().length === 0,
      dropUnfenced: () => {
        for (const environmentId of this.#fences.notLoaded()) {
          this.#buffer.clear(environmentId);
          for (const subscriber of this.#subscribersOf(environmentId)) subscriber.dropQueued();
        }
      },
    });
  }

  #leave(subscriber: HubSubscriber): void {
    if (!this.#subscribers.delete(subscriber)) return;
    const { environmentId } = subscriber;
    if (this.#subscribersOf(environmentId).length === 0) {
      this.#buffer.clear(environmentId);
      this.#closing = Promise.all([this.#closing, this.#fences.leave(environmentId)]);
    }
    if (this.#subscribers.size > 0 || this.#watch === null) return;
    this.#closing = Promise.all([this.#closing, this.#watch.close()]);
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
    const recipients = this.#subscribersOf(entry.environmentId);
    const fences = this.#fences.find(entry.environmentId);
    if (recipients.length === 0 || fences === undefined) return;
    removeErasedContent(entry, fences);
    this.#buffer.add(entry);
    for (const subscriber of recipients) subscriber.offer(entry);
  }

  #removeErased(entry: LiveEntry): void {
    const fences = this.#fences.find(entry.environmentId);
    if (fences !== undefined && removeErasedContent(entry, fences)) this.#onChange(entry);
  }

  #onChange(entry: LiveEntry): void {
    for (const subscriber of this.#subscribersOf(entry.environmentId)) subscriber.onEntryChange(entry);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const subscriber of this.#subscribers) subscriber.end('closed');
    await this.#closing;
  }
}

interface EnvironmentFences {
  readonly set: ReturnType<OpenFences>;
  readonly openedMs: number;
  wasLoaded: boolean;
}

/** The first read normally takes milliseconds. If it takes longer than this, a warning is shown. */
const FIRST_READ_MS = 5_000;
const FENCES_UNREADABLE =
  'No messages are shown, because the list of erased people cannot be read. This view resumes automatically.';

function createEnvironmentFences(openFences: OpenFences) {
  const sets = new Map<string, EnvironmentFences>();
  const isLoaded = (fences: EnvironmentFences) => {
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
    find: (environmentId: string) => sets.get(environmentId)?.set,
    /** Returns the environments whose fences are not loaded. The log is read only if there are none. */
    notLoaded: () => [...sets].filter(([, fences]) => !isLoaded(fences)).map(([id]) => id),
    stateOf(environmentId: string) {
      const fences = sets.get(environmentId);
      if (fences === undefined || isLoaded(fences)) return { isKnown: true, trouble: '' };
      const isLate = fences.wasLoaded || performance.now() - fences.openedMs > FIRST_READ_MS;
      return { isKnown: false, trouble: isLate ? FENCES_UNREADABLE : '' };
    },
  };
}

/**
 * Applies the fences as the event writer does: removes the entire content of a message about an erased person. Removes
 * only the anonymous id if the message comes from a device that an erased person shared.
 * @returns true if the content was removed by this call
 */
function removeErasedContent(entry: LiveEntry, fences: Pick<FenceSet, 'isFenced'>): boolean {
  const { message, environmentId } = entry;
  if (message === null) return false;
  const times = { eventTimeMs: message.eventTime, receivedAtMs: entry.receivedAt };
  const isErased = (key: string) => fences.isFenced({ environmentId, key: Buffer.from(key, 'hex'), ...times });
  if (message.subjectKeys.some(isErased)) {
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

/** Checks the permission periodically. The interval is also the timeout. @returns a function that stops the checks */
function checkPermission(
  isStillAllowed: Subscription['isStillAllowed'],
  intervalMs: number,
  onEnd: (reason: EndReason) => void,
): () => void {
  let isRunning = false;
  const check = async () => {
    if (isRunning) return onEnd('access check failed');
    isRunning = true;
    try {
      if ((await isStillAllowed()) !== true) onEnd('access revoked');
      isRunning = false;
    } catch {
      onEnd('access check failed');
    }
  };
  const timer = setInterval(check, intervalMs);
  return () => clearInterval(timer);
}
