import type { Message } from './message.ts';
import type { DroppedMessages } from './options.ts';
import { attempt, type MessageStorage } from './store.ts';

/** An unsent message. */
export interface Entry {
  readonly id: string;
  /** Key in the store. Keys sort by age. */
  readonly key: string;
  /** Message as JSON. While `stored` is true, the store takes precedence, because another tab may have changed it. */
  text: string;
  /** Size including the comma that follows in the batch. */
  bytes: number;
  /** False if the store failed. */
  stored: boolean;
  /** Increases with each entry of this queue. */
  readonly order: number;
  /** Number of in-flight requests that contain this entry. */
  requests: number;
  /** True if a request that contains this entry outlives the page. */
  keepalive: boolean;
}

export interface Batch {
  readonly body: string;
  readonly bytes: number;
  readonly entries: Entry[];
  /** True if the batch's request outlives the page. */
  readonly keepalive: boolean;
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
  /** Entries, oldest first. */
  entries: Entry[];
  bytes: number;
  newest: number;
}

/** Creates a bounded queue whose entries are persisted in the store until they are settled. */
export function createQueue(options: QueueOptions) {
  const state: State = { ...options, entries: [], bytes: 0, newest: 0 };
  return {
    get size() {
      return state.entries.length;
    },
    get newest() {
      return state.newest;
    },
    /** Loads entries that earlier pages or other tabs have stored. */
    load: () => load(state),
    add: (id: string, text: string) => {
      const key = state.storage.keyOf(id, state.newest + 1);
      insert(state, { key, text, stored: state.storage.put(key, text) });
      trim(state);
    },
    /**
     * Returns the oldest entries that fit into one batch, or null. The entries stay in the queue until `remove`. Skips
     * entries in requests that outlive the page, but not in other requests, of which only one may run at a time.
     */
    take: (limits: BatchLimits, keepalive = false) => take(state, limits, keepalive),
    /** Returns whether a full batch, or an entry up to `order`, is waiting. */
    isDue: (order: number, { messagesMax, bytesMax }: BatchLimits) => {
      const waiting = state.entries.filter(({ requests }) => requests === 0);
      if (waiting.length >= messagesMax || waiting.some((entry) => entry.order <= order)) return true;
      return waiting.reduce((sum, { bytes }) => sum + bytes, 0) >= bytesMax;
    },
    /** Call when a request has ended, so that its entries can be taken again. */
    release: ({ entries, keepalive }: Batch) => {
      for (const entry of entries) {
        entry.requests -= 1;
        if (keepalive) entry.keepalive = false;
      }
    },
    /** Removes entries. Returns the entries that were still in the queue. */
    remove: (entries: Entry[]) => remove(state, entries),
    /** Replaces each message, or drops the message if `change` returns null. */
    rewrite: (change: (message: Message) => Message | null) => rewrite(state, change),
  };
}

function insert(state: State, added: Pick<Entry, 'key' | 'text' | 'stored'>): Entry {
  state.newest += 1;
  const entry = {
    ...added,
    id: state.storage.idOf(added.key),
    bytes: byteLength(added.text) + 1,
    order: state.newest,
    requests: 0,
    keepalive: false,
  };
  state.entries.push(entry);
  state.bytes += entry.bytes;
  return entry;
}

function load(state: State): void {
  const known = new Set(state.entries.map(({ key }) => key));
  const expired: Entry[] = [];
  for (const { key, text, isExpired } of state.storage.list()) {
    if (known.has(key)) continue;
    const entry = insert(state, { key, text, stored: true });
    if (isExpired) expired.push(entry);
  }
  drop(state, expired, 'expired');
  state.entries.sort((one, other) => (one.key < other.key ? -1 : 1));
  trim(state);
}

function remove(state: State, entries: Entry[]): Entry[] {
  const removed = state.entries.filter((entry) => entries.includes(entry));
  state.entries = state.entries.filter((entry) => !removed.includes(entry));
  for (const entry of removed) {
    state.bytes -= entry.bytes;
    state.storage.remove(entry.key);
  }
  return removed;
}

function drop(state: State, dropped: Entry[], reason: DroppedMessages['reason']): void {
  const messageIds = remove(state, dropped).map(({ id }) => id);
  if (messageIds.length > 0) state.onDropped({ messageIds, reason });
}

function trim(state: State): void {
  const dropped: Entry[] = [];
  let [count, bytes] = [state.entries.length, state.bytes];
  for (const entry of state.entries) {
    if (count <= state.messagesMax && bytes <= state.bytesMax) break;
    // An in-flight request may still deliver this entry.
    if (entry.requests > 0) continue;
    dropped.push(entry);
    count -= 1;
    bytes -= entry.bytes;
  }
  drop(state, dropped, 'queue_full');
}

function take(state: State, limits: BatchLimits, keepalive: boolean): Batch | null {
  const dropped: Entry[] = [];
  const entries: Entry[] = [];
  let bytes = BODY_START.length + BODY_END.length;
  for (const entry of state.entries) {
    if (entry.keepalive) continue;
    if (!refresh(state, entry)) {
      dropped.push(entry);
      continue;
    }
    if (entries.length === limits.messagesMax || bytes + entry.bytes > limits.bytesMax) break;
    bytes += entry.bytes;
    entries.push(entry);
  }
  remove(state, dropped);
  if (entries.length === 0) return null;
  for (const entry of entries) {
    entry.requests += 1;
    entry.keepalive = keepalive;
  }
  return { body: BODY_START + entries.map(({ text }) => text).join() + BODY_END, bytes, entries, keepalive };
}

/** Applies changes by other tabs. Returns false if another tab has settled the message. */
function refresh(state: State, entry: Entry): boolean {
  const text = entry.stored ? state.storage.read(entry.key, entry.text) : entry.text;
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
  const dropped: Entry[] = [];
  for (const entry of state.entries) {
    const message = refresh(state, entry) && attempt(() => change(JSON.parse(entry.text)), null);
    if (!message) {
      dropped.push(entry);
      continue;
    }
    replace(state, entry, JSON.stringify(message));
    // Remove the old entry first, so that it does not remain if the store rejects the new entry.
    state.storage.remove(entry.key);
    entry.stored = state.storage.put(entry.key, entry.text);
  }
  drop(state, dropped, 'consent');
}
