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

export type Sender = ReturnType<typeof openSender>;

/** First back-off; it doubles with each failure. */
const RETRY_MIN_MS = 1000;
/** Pages are often open for a few minutes only. */
const RETRY_MAX_MS = 60_000;

const createState = (options: SenderOptions) => ({
  ...options,
  timer: undefined as ReturnType<typeof setTimeout> | undefined,
  running: null as Promise<void> | null,
  closed: false,
  /** Entries up to this `order` must be sent now. */
  due: 0,
  failures: 0,
  /** End of the back-off, by `performance.now()`; `close` ignores it. */
  retryAtMs: 0,
  /** End of the service's Retry-After, by `performance.now()`; only a new page ignores it. */
  refusedUntilMs: 0,
  /** Bytes of `keepalive` requests in flight. */
  leavingBytes: 0,
});
type State = ReturnType<typeof createState>;

/** Sends one batch at a time: when a batch is full, when its oldest message is due, and when the page closes. */
export function openSender(options: SenderOptions) {
  const state = createState(options);
  return {
    /** Call it after each queued message. */
    onQueued: () => {
      if (state.closed) return;
      if (state.queue.isDue(0, limitsOf(state)) && maySend(state)) void flush(state);
      else schedule(state);
    },
    /** Resolves to the number of unsent messages. */
    flush: () => flush(state),
    /** The page may end at any time: starts requests that outlive it before this returns. */
    leave: () => leave(state),
    /** The network is back. */
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
  // Starts in a later turn of the event loop, so that `running` is set before it can end.
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
  // In Node the timer must not keep the process alive.
  (state.timer as { unref?(): void }).unref?.();
}

function leave(state: State): void {
  if (host.navigator?.onLine === false || performance.now() < state.refusedUntilMs) return;
  for (;;) {
    const bytesMax = BATCH_BYTES_MAX - state.leavingBytes;
    const batch = state.queue.take({ ...limitsOf(state), bytesMax }, true);
    if (!batch) return;
    state.leavingBytes += batch.bytes;
    // Not awaited: the page may end first, and the next page then sends it again.
    void state.post.send(batch.body, true).then((answer) => {
      state.leavingBytes -= batch.bytes;
      settle(state, batch, answer);
      schedule(state);
    });
  }
}

/** Only here do messages leave queue and store: answered by the service, or dropped and reported. */
function settle(state: State, batch: Batch, answer: Answer): void {
  state.queue.release(batch);
  if (answer.kind === 'later') {
    const backOffMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** state.failures);
    state.failures += 1;
    // Jitter keeps clients that failed together apart.
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
