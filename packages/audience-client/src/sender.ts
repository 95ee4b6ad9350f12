import { host } from './host.ts';
import { BATCH_BYTES_MAX, type MessageRejection } from './message.ts';
import type { DroppedMessages } from './options.ts';
import type { Answer, Post } from './post.ts';
import type { Batch, Queue } from './queue.ts';

export interface SenderOptions {
  queue: Queue;
  post: Post;
  flushIntervalMs: number;
  batchMessagesMax: number;
  onRejected: (rejection: MessageRejection) => void;
  onDropped: (dropped: DroppedMessages) => void;
}

export interface Sender {
  /** To be called after each message that was queued. */
  onQueued(): void;
  /** Resolves to the number of messages still unsent. */
  flush(): Promise<number>;
  /** The page may end at any time from now on. Starts requests that outlive it before this method returns. */
  leave(): void;
  /** Called when the network is back. */
  resume(): void;
  close(): Promise<number>;
}

/** First wait in milliseconds after a failure; it doubles with each failure that follows. */
const RETRY_MIN_MS = 1000;
/** A page is often open for a few minutes only, and should try again within them. */
const RETRY_MAX_MS = 60_000;

interface State extends SenderOptions {
  timer: ReturnType<typeof setTimeout> | undefined;
  running: Promise<void> | null;
  closed: boolean;
  /** Entries up to this `order` have been asked to leave. */
  due: number;
  failures: number;
  /**
   * By `performance.now()`: the end of our own back-off, which `close` ignores. Not the wall clock, since that may be
   * set.
   */
  retryAtMs: number;
  /**
   * By `performance.now()`: the end of the service's Retry-After, which nothing ignores. Only a new page asks again.
   */
  refusedUntilMs: number;
  /** Bytes of requests under way that will outlive the page. */
  leavingBytes: number;
}

/**
 * Sends one batch at a time: when enough messages wait, when the oldest has waited long enough, and when the page is
 * closed.
 */
export function openSender(options: SenderOptions): Sender {
  const state: State = {
    ...options,
    timer: undefined,
    running: null,
    closed: false,
    due: 0,
    failures: 0,
    retryAtMs: 0,
    refusedUntilMs: 0,
    leavingBytes: 0,
  };
  return {
    onQueued: () => {
      if (state.closed) return;
      if (state.queue.isDue(0, limitsOf(state)) && maySend(state)) void flush(state);
      else schedule(state);
    },
    flush: () => flush(state),
    leave: () => leave(state),
    resume: () => {
      state.retryAtMs = 0;
      void flush(state);
    },
    async close() {
      state.closed = true;
      clearTimeout(state.timer);
      await state.running;
      state.retryAtMs = 0;
      return flush(state);
    },
  };
}

function limitsOf({ batchMessagesMax }: State) {
  return { messagesMax: batchMessagesMax, bytesMax: BATCH_BYTES_MAX };
}

function maySend({ retryAtMs, refusedUntilMs }: State): boolean {
  return host.navigator?.onLine !== false && performance.now() >= Math.max(retryAtMs, refusedUntilMs);
}

async function flush(state: State): Promise<number> {
  state.due = state.queue.newest;
  // Started in a later turn of the event loop, so that `running` is set before it can end.
  state.running ??= Promise.resolve().then(() => drain(state));
  await state.running;
  return state.queue.size;
}

async function drain(state: State): Promise<void> {
  while (maySend(state) && state.queue.isDue(state.due, limitsOf(state))) {
    const batch = state.queue.take(limitsOf(state));
    if (!batch) break;
    settle(state, batch, await state.post.send(batch.body, false));
  }
  state.running = null;
  schedule(state);
}

function schedule(state: State): void {
  if (state.closed || state.timer !== undefined || state.queue.size === 0) return;
  const waitMs = Math.max(state.retryAtMs, state.refusedUntilMs) - performance.now();
  state.timer = setTimeout(
    () => {
      state.timer = undefined;
      void flush(state);
    },
    Math.max(state.flushIntervalMs, waitMs),
  );
  // In Node a process that has nothing else to do may exit; `close` is there to send the rest.
  (state.timer as { unref?(): void }).unref?.();
}

function leave(state: State): void {
  if (host.navigator?.onLine === false || performance.now() < state.refusedUntilMs) return;
  for (;;) {
    const room = BATCH_BYTES_MAX - state.leavingBytes;
    const batch = state.queue.take({ ...limitsOf(state), bytesMax: room }, true);
    if (!batch) return;
    state.leavingBytes += batch.bytes;
    // Not awaited: only a page that lives on learns whether it arrived. If this one does not, the next page sends it
    // again.
    void state.post.send(batch.body, true).then((answer) => {
      state.leavingBytes -= batch.bytes;
      settle(state, batch, answer);
      schedule(state);
    });
  }
}

/**
 * This is the only place where a message leaves queue and store: when the service has answered for it, or when it is
 * dropped and reported. So delivery is at least once.
 */
function settle(state: State, batch: Batch, answer: Answer): void {
  state.queue.release(batch);
  if (answer.kind === 'later') {
    const backOffMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** state.failures);
    state.failures += 1;
    // Half of the wait is random, so that clients that failed together do not come back together.
    const jitteredMs = backOffMs * (0.5 + Math.random() / 2);
    state.retryAtMs = performance.now() + jitteredMs;
    if (answer.afterMs > 0) state.refusedUntilMs = performance.now() + answer.afterMs + jitteredMs;
    return;
  }
  state.failures = 0;
  const ids = new Set(state.queue.remove(batch.entries).map(({ id }) => id));
  for (const rejection of answer.rejections) {
    if (ids.has(rejection.messageId)) state.onRejected(rejection);
    if (answer.kind === 'refused') ids.delete(rejection.messageId);
  }
  if (answer.kind === 'refused' && ids.size > 0) {
    const { status, code, message } = answer;
    state.onDropped({ messageIds: [...ids], reason: 'refused', status, code, message });
  }
}
