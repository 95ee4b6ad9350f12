import type { Message } from './message.ts';
import type { DroppedMessages } from './options.ts';
import { attempt, type MessageStorage } from './store.ts';

/** One unsent message. */
export interface Entry {
  readonly id: string;
  /** Its key in the store; keys sort by age. */
  readonly key: string;
  /** JSON. While `kept` is true the text in the store wins: another tab may have changed it. */
  text: string;
  /** With the comma after it. */
  bytes: number;
  /** False when the store failed. */
  kept: boolean;
  /** Ascending within this queue. */
  readonly order: number;
  /** How many requests in flight carry this entry. */
  requests: number;
  /** One of those requests outlives the page. */
  leaving: boolean;
}

export interface Batch {
  readonly body: string;
  readonly bytes: number;
  readonly entries: Entry[];
  /** Its request outlives the page. */
  readonly leaving: boolean;
}

export interface BatchLimits {
  messagesMax: number;
  bytesMax: number;
}

export interface QueueOptions extends BatchLimits {
  storage: MessageStorage;
  onDropped: (dropped: DroppedMessages) => void;
}

export type Queue = ReturnType<typeof createQueue>;

const BODY_START = '{"messages":[';
const BODY_END = ']}';

export const byteLength = (text: string): number => new TextEncoder().encode(text).length;

interface State extends QueueOptions {
  /** Oldest first. */
  entries: Entry[];
  bytes: number;
  newest: number;
}

/** A bounded queue whose entries are also in the store until they are settled. */
export function createQueue(options: QueueOptions) {
  const state: State = { ...options, entries: [], bytes: 0, newest: 0 };
  return {
    get size() {
      return state.entries.length;
    },
    get newest() {
      return state.newest;
    },
    /** Loads entries that an earlier page or another tab stored. */
    load: () => load(state),
    add: (id: string, text: string) => {
      const key = state.storage.keyOf(id, state.newest + 1);
      insert(state, { key, text, kept: state.storage.put(key, text) });
      trim(state);
    },
    /**
     * Takes the oldest entries that fit into one batch; null when there is none. They stay in the queue until `remove`.
     * Entries of `leaving` requests are not taken again; entries of ordinary requests are, so make those one at a time.
     */
    take: (limits: BatchLimits, leaving = false) => take(state, limits, leaving),
    /** Whether an entry as old as `order` waits, or a whole batch. */
    isDue: (order: number, { messagesMax, bytesMax }: BatchLimits) => {
      const waiting = state.entries.filter(({ requests }) => requests === 0);
      if (waiting.length >= messagesMax || waiting.some((entry) => entry.order <= order)) return true;
      return waiting.reduce((sum, { bytes }) => sum + bytes, 0) >= bytesMax;
    },
    /** The request ended: its entries may be taken again. */
    release: ({ entries, leaving }: Batch) => {
      for (const entry of entries) {
        entry.requests -= 1;
        if (leaving) entry.leaving = false;
      }
    },
    /** Returns those that were in the queue. */
    remove: (entries: Entry[]) => remove(state, entries),
    /** Replaces each message; null removes it. */
    rewrite: (change: (message: Message) => Message | null) => rewrite(state, change),
  };
}

function insert(state: State, stored: Pick<Entry, 'key' | 'text' | 'kept'>): Entry {
  state.newest += 1;
  const entry = {
    ...stored,
    id: state.storage.idOf(stored.key),
    bytes: byteLength(stored.text) + 1,
    order: state.newest,
    requests: 0,
    leaving: false,
  };
  state.entries.push(entry);
  state.bytes += entry.bytes;
  return entry;
}

function load(state: State): void {
  const known = new Set(state.entries.map(({ key }) => key));
  const expired: Entry[] = [];
  for (const stored of state.storage.list()) {
    if (known.has(stored.key)) continue;
    const entry = insert(state, { key: stored.key, text: stored.text, kept: true });
    if (stored.expired) expired.push(entry);
  }
  drop(state, expired, 'expired');
  state.entries.sort((one, other) => (one.key < other.key ? -1 : 1));
  trim(state);
}

function remove(state: State, gone: Entry[]): Entry[] {
  const there = state.entries.filter((entry) => gone.includes(entry));
  state.entries = state.entries.filter((entry) => !there.includes(entry));
  for (const entry of there) {
    state.bytes -= entry.bytes;
    state.storage.remove(entry.key);
  }
  return there;
}

function drop(state: State, gone: Entry[], reason: DroppedMessages['reason']): void {
  const messageIds = remove(state, gone).map(({ id }) => id);
  if (messageIds.length > 0) state.onDropped({ messageIds, reason });
}

function trim(state: State): void {
  const gone: Entry[] = [];
  let [count, bytes] = [state.entries.length, state.bytes];
  for (const entry of state.entries) {
    if (count <= state.messagesMax && bytes <= state.bytesMax) break;
    // A request in flight may be delivering it.
    if (entry.requests > 0) continue;
    gone.push(entry);
    count -= 1;
    bytes -= entry.bytes;
  }
  drop(state, gone, 'queue_full');
}

function take(state: State, limits: BatchLimits, leaving: boolean): Batch | null {
  const gone: Entry[] = [];
  const entries: Entry[] = [];
  let bytes = BODY_START.length + BODY_END.length;
  for (const entry of state.entries) {
    if (entry.leaving) continue;
    if (!refresh(state, entry)) {
      gone.push(entry);
      continue;
    }
    if (entries.length === limits.messagesMax || bytes + entry.bytes > limits.bytesMax) break;
    bytes += entry.bytes;
    entries.push(entry);
  }
  remove(state, gone);
  if (entries.length === 0) return null;
  for (const entry of entries) {
    entry.requests += 1;
    entry.leaving = leaving;
  }
  return { body: BODY_START + entries.map(({ text }) => text).join() + BODY_END, bytes, entries, leaving };
}

/** Applies what another tab wrote. False when that tab has settled the message. */
function refresh(state: State, entry: Entry): boolean {
  const text = entry.kept ? state.storage.read(entry.key, entry.text) : entry.text;
  if (text === null) return false;
  replace(state, entry, text);
  return true;
}

function replace(state: State, entry: Entry, text: string): void {
  if (text === entry.text) return;
  state.bytes -= entry.bytes;
  entry.text = text;
  entry.bytes = byteLength(text) + 1;
  state.bytes += entry.bytes;
}

function rewrite(state: State, change: (message: Message) => Message | null): void {
  const gone: Entry[] = [];
  for (const entry of state.entries) {
    const message = refresh(state, entry) && attempt(() => change(JSON.parse(entry.text)), null);
    if (!message) {
      gone.push(entry);
      continue;
    }
    replace(state, entry, JSON.stringify(message));
    // Removed first: if the store refuses the new text, the old one must not stay.
    state.storage.remove(entry.key);
    entry.kept = state.storage.put(entry.key, entry.text);
  }
  drop(state, gone, 'consent');
}
