import type { SchemaSource } from '@playline/contracts';
import type { FenceSet } from '@playline/erasure';
import { PublicError } from '@playline/errors';
import type { LogReader } from '@playline/stream';
import { createBuffer, type LiveBuffer } from './buffer.ts';
import type { LiveEntry } from './entry.ts';
import { createEnvironmentFences, type EnvironmentFences, type OpenFences } from './environment-fences.ts';
import type { EndReason } from './event.ts';
import type { LiveFilter } from './filter.ts';
import { LIVE_LIMITS, type LiveLimits } from './limits.ts';
import { createReadLiveRecord, type LiveRecord, type LiveTopics, type ReadLiveRecord } from './read-live-record.ts';
import { type HubSubscriber, openSubscriber, type Slot, type Subscriber } from './subscriber.ts';
import { openWatch, type Watch } from './watch.ts';

/** What somebody asks to see. */
export interface Subscription {
  /** Compared whole: nobody sees another environment. */
  readonly environmentId: string;
  readonly filter: LiveFilter;
  /** Whether the looker sees no raw ids. */
  readonly masks: boolean;
  /** Asked twice a second. Anything but true, and no answer in time, ends the look. */
  isStillAllowed(): boolean | Promise<boolean>;
}

/** What becomes of messages, for everybody who looks; one reading of the log for all of them. Keeps nothing. */
export interface LiveHub {
  /** Begins a look; close it. @throws PublicError TOO_MANY_REQUESTS_ERROR when as many look as may */
  subscribe(request: Subscription): Subscriber;
  readonly subscribers: number;
  /** Entries held for all of them, and the memory these take, about. */
  readonly held: { readonly entries: number; readonly bytes: number };
  /** Ends every look. */
  close(): Promise<void>;
}

export interface LiveParts {
  readonly log: Pick<LogReader, 'bounds' | 'read' | 'committed'>;
  readonly topics: LiveTopics;
  readonly schemaOf: SchemaSource;
  /** Of the event writer: what it has committed is stored. */
  readonly writerGroup: string;
  readonly openFences: OpenFences;
  /** Told of each outage once. */
  readonly onFault: (fault: unknown) => void;
  readonly limits?: LiveLimits;
}

const RETRY_AFTER_S = 10;
const TOO_MANY_SUBSCRIBERS =
  'As many people look at live messages as this portal allows. Close a tab that is not needed, or try again.';

export function openLiveHub(parts: LiveParts): LiveHub {
  return new SharedHub(parts);
}

class SharedHub implements LiveHub {
  readonly #parts: LiveParts;
  readonly #limits: LiveLimits;
  readonly #lookers = createSubscribers();
  readonly #seats = createSlots();
  readonly #buffer: LiveBuffer;
  readonly #readFinding: ReadLiveRecord;
  readonly #fences: EnvironmentFences;
  /** The reading of the log; null while nobody looks. */
  #watch: Watch | null = null;
  #ended: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(parts: LiveParts) {
    this.#parts = parts;
    this.#limits = parts.limits ?? LIVE_LIMITS;
    this.#buffer = createBuffer(this.#limits);
    this.#fences = createEnvironmentFences(parts.openFences);
    this.#readFinding = createReadLiveRecord({ ...parts, limits: this.#limits });
  }

  get subscribers(): number {
    return this.#lookers.count;
  }

  get held(): LiveHub['held'] {
    return { entries: this.#buffer.size, bytes: this.#buffer.bytes };
  }

  subscribe({ environmentId, filter, masks, isStillAllowed }: Subscription): Subscriber {
    const { subscribersMax: lookersMax, queueEventsMax, permissionMs } = this.#limits;
    if (this.#isClosed || this.#lookers.count >= lookersMax)
      throw new PublicError('TOO_MANY_REQUESTS_ERROR', { message: TOO_MANY_SUBSCRIBERS, retryAfterS: RETRY_AFTER_S });
    const seat = this.#seats.take();
    const onClose = () => {
      stopAsking();
      this.#seats.free(seat);
      this.#leave(looker);
    };
    const withdraw = (entry: LiveEntry) => this.#withdraw(entry);
    const looker = openSubscriber({ slot: seat, environmentId, filter, masks, queueEventsMax, withdraw, onClose });
    const onEnd = (reason: EndReason) => looker.end(reason);
    const stopAsking = watchPermission({ isStillAllowed, everyMs: permissionMs, onEnd });
    this.#fences.enter(environmentId);
    this.#lookers.add(looker);
    this.#watch ??= this.#begin();
    this.#watch.report();
    return looker;
  }

  #begin(): Watch {
    return openWatch({
      ...this.#parts,
      limits: this.#limits,
      buffer: this.#buffer,
      readLiveRecord: this.#readFinding,
      onRecord: (finding) => this.#take(finding),
      onChange: (entry) => this.#changed(entry),
      withdraw: (entry) => this.#withdraw(entry),
      onState: (state) => {
        for (const looker of this.#lookers.all()) {
          const { isKnown, trouble } = this.#fences.stateOf(looker.environmentId);
          looker.setState({ ...state, isWatching: state.isWatching && isKnown, trouble: trouble || state.trouble });
        }
      },
      areFencesLoaded: this.#fences.areLoaded,
      dropUnknown: () => {
        for (const environmentId of this.#fences.unknown()) {
          this.#buffer.clear(environmentId);
          for (const looker of this.#lookers.of(environmentId)) looker.dropQueued();
        }
      },
    });
  }

  #leave(looker: HubSubscriber): void {
    if (!this.#lookers.remove(looker)) return;
    if (this.#lookers.of(looker.environmentId).length === 0) {
      this.#buffer.clear(looker.environmentId);
      this.#ended = Promise.all([this.#ended, this.#fences.leave(looker.environmentId)]).then(() => {});
    }
    if (this.#lookers.count > 0 || this.#watch === null) return;
    const ending = this.#watch;
    this.#watch = null;
    this.#ended = Promise.all([this.#ended, ending.close()]).then(() => {});
  }

  #take(finding: LiveRecord): void {
    const standing = finding.kind === 'letter' ? this.#buffer.find(finding.place) : undefined;
    if (finding.kind === 'letter' && standing !== undefined) {
      standing.fate = 'dead-lettered';
      standing.reason = finding.reason;
      this.#changed(standing);
    } else if (finding.entry !== null) this.#offer(finding.entry);
  }

  #offer(entry: LiveEntry): void {
    const interested = this.#lookers.of(entry.environmentId);
    // Entries of an environment that nobody looks at are not kept.
    const fences = this.#fences.of(entry.environmentId);
    if (interested.length === 0 || fences === undefined) return;
    withdrawErased(entry, fences);
    this.#buffer.add(entry);
    for (const looker of interested) looker.offer(entry);
  }

  #withdraw(entry: LiveEntry): void {
    const fences = this.#fences.of(entry.environmentId);
    if (fences !== undefined && withdrawErased(entry, fences)) this.#changed(entry);
  }

  #changed(entry: LiveEntry): void {
    for (const looker of this.#lookers.of(entry.environmentId)) looker.changed(entry);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const looker of this.#lookers.all()) looker.end('closed');
    await this.#ended;
  }
}

/** The lowest free seat: the marks of an entry then need no more places than there are lookers at one time. */
function createSlots() {
  const taken = new Set<number>();
  let looks = 0;
  return {
    take(): Slot {
      let index = 0;
      while (taken.has(index)) index++;
      taken.add(index);
      return { index, generation: looks++ };
    },
    free: ({ index }: Slot): void => void taken.delete(index),
  };
}

/** Lookers by environment, compared whole. */
function createSubscribers() {
  const byEnvironment = new Map<string, Set<HubSubscriber>>();
  let count = 0;
  return {
    get count() {
      return count;
    },
    add(looker: HubSubscriber): void {
      const own = byEnvironment.get(looker.environmentId) ?? new Set();
      byEnvironment.set(looker.environmentId, own.add(looker));
      count++;
    },
    /** False when the looker had left before. */
    remove(looker: HubSubscriber): boolean {
      const own = byEnvironment.get(looker.environmentId);
      if (own?.delete(looker) !== true) return false;
      if (own.size === 0) byEnvironment.delete(looker.environmentId);
      count--;
      return true;
    },
    of: (environmentId: string): HubSubscriber[] => [...(byEnvironment.get(environmentId) ?? [])],
    all: (): HubSubscriber[] => [...byEnvironment.values()].flatMap((own) => [...own]),
  };
}

/**
 * Takes away what an entry says of erased people, by the rule of the event writer: all of it where it is about one of them,
 * else the anonymous id that it merely carries.
 * @returns whether it was taken away now
 */
function withdrawErased(entry: LiveEntry, fences: Pick<FenceSet, 'isFenced'>): boolean {
  const { message, environmentId } = entry;
  if (message === null) return false;
  const times = { eventTimeMs: message.eventTime, receivedAtMs: entry.receivedAt };
  const isErased = (key: string) => fences.isFenced({ environmentId, key: Buffer.from(key, 'hex'), ...times });
  if (message.ownKeys.some(isErased)) {
    entry.message = null;
    entry.fate = 'fenced';
    entry.reason = '';
    return true;
  }
  if (message.anonymousKey !== '' && isErased(message.anonymousKey)) {
    const { anonymousId: _, ...ids } = message.ids;
    entry.message = { ...message, ids, anonymousKey: '' };
  }
  return false;
}

/** A question that is asked again and again. */
interface PermissionParts {
  isStillAllowed(): boolean | Promise<boolean>;
  readonly everyMs: number;
  readonly onEnd: (reason: EndReason) => void;
}

/**
 * Asks whether somebody may still do what goes on. Ends it when the answer is no, and when none has come by the time of the
 * next question: within two of these times, whatever happens.
 * @returns a call that stops the asking
 */
function watchPermission({ isStillAllowed, everyMs, onEnd }: PermissionParts): () => void {
  let isAsked = false;
  let isStopped = false;
  const end = (reason: EndReason) => {
    if (isStopped) return;
    stop();
    onEnd(reason);
  };
  const ask = async () => {
    if (isAsked) return end('permission unknown');
    isAsked = true;
    try {
      if ((await isStillAllowed()) !== true) end('not allowed any more');
      isAsked = false;
    } catch {
      end('permission unknown');
    }
  };
  const timer = setInterval(ask, everyMs);
  const stop = () => {
    isStopped = true;
    clearInterval(timer);
  };
  return stop;
}
