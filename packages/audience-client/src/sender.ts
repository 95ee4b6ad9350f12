import { host } from './host.ts';
import { BATCH_BYTES_MAX, type MessageRejection } from './message.ts';
import type { DroppedMessages } from './options.ts';
import type { Post, PostResult } from './post.ts';
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

/** Initial back-off, doubled after each failure. */
const RETRY_MIN_MS = 1000;
/** Kept short, because pages are often open only for a few minutes. */
const RETRY_MAX_MS = 60_000;

const createState = (options: SenderOptions) => ({
  ...options,
  timer: undefined as ReturnType<typeof setTimeout> | undefined,
  running: null as Promise<void> | null,
  closed: false,
  /** Entries up to this `order` are sent without waiting for a full batch. */
  due: 0,
  failures: 0,
  /** End of the back-off by `performance.now()`. `close` ignores the back-off. */
  retryAtMs: 0,
  /** End of the service's Retry-After by `performance.now()`. Only a new page ignores Retry-After. */
  refusedUntilMs: 0,
  /** Total size of in-flight `keepalive` requests. */
  keepaliveBytes: 0,
});
type State = ReturnType<typeof createState>;

/** Sends batches one at a time: when a batch is full, when its oldest message is due, or when the page closes. */
export function openSender(options: SenderOptions) {
  const state = createState(options);
  return {
    /** Call after queueing a message. */
    onQueued: () => {
      if (state.closed) return;
      if (state.queue.isDue(0, limitsOf(state)) && maySend(state)) void flush(state);
      else schedule(state);
    },
    /** Sends all queued messages. Resolves to the number of unsent messages. */
    flush: () => flush(state),
    /** Call when the page may close. Starts requests that outlive the page before returning. */
    leave: () => leave(state),
    /** Call when the network is available again. */
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
  // Starts asynchronously, so that `running` is set before `drain` can finish.
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
    const bytesMax = BATCH_BYTES_MAX - state.keepaliveBytes;
    const batch = state.queue.take({ ...limitsOf(state), bytesMax }, true);
    if (!batch) return;
    state.keepaliveBytes += batch.bytes;
    // Not awaited: if the page closes first, the next page resends the batch.
    void state.post.send(batch.body, true).then((result) => {
      state.keepaliveBytes -= batch.bytes;
      settle(state, batch, result);
      schedule(state);
    });
  }
}

/** Removes confirmed and refused messages from the queue and the store, and reports rejections. */
function settle(state: State, batch: Batch, result: PostResult): void {
  state.queue.release(batch);
  if (result.kind === 'retry') {
    const backOffMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** state.failures);
    state.failures += 1;
    // Jitter prevents clients that failed together from retrying together.
    const jitteredMs = backOffMs * (0.5 + Math.random() / 2);
    state.retryAtMs = performance.now() + jitteredMs;
    if (result.afterMs > 0) state.refusedUntilMs = performance.now() + result.afterMs + jitteredMs;
    return;
  }
  state.failures = 0;
  const ids = new Set(state.queue.remove(batch.entries).map(({ id }) => id));
  for (const rejection of result.rejections) {
    if (ids.has(rejection.messageId)) state.onRejected(rejection);
    if (result.kind === 'refused') ids.delete(rejection.messageId);
  }
  if (result.kind === 'refused' && ids.size > 0) {
    const { status, code, message } = result;
    state.onDropped({ messageIds: [...ids], reason: 'refused', status, code, message });
  }
}
