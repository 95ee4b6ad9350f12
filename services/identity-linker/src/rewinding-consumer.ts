import { GraphBehindFault } from '@playline/people';
import type { BatchHandler, Consumer } from '@playline/stream';

export interface RewindingOptions {
  open(handler: BatchHandler): Promise<Consumer>;
  /** Called when the graph has lost facts, before the consumer is closed. */
  onRewind(): void;
  /** Whether the graph has lost facts. Called every second, because the next batch may be hours away. */
  hasLost(): Promise<boolean>;
}

const CHECK_EVERY_MS = 1_000;

/**
 * Opens a consumer that goes back when the graph has lost applied facts. The only way to move a position back is to
 * close the consumer, open it again and determine the start. It is not ready meanwhile.
 */
export async function openRewindingConsumer(
  handler: BatchHandler,
  { open, onRewind, hasLost }: RewindingOptions,
): Promise<Consumer> {
  let closed = false;
  let reopening: Promise<void> | null = null;
  const reopen = async () => {
    onRewind();
    await consumer.close();
    if (!closed) consumer = await open(watched);
  };
  const goBack = () => {
    reopening ??= reopen().finally(() => {
      reopening = null;
    });
  };
  const watched: BatchHandler = {
    ...handler,
    async onBatch(records, position) {
      try {
        await handler.onBatch(records, position);
      } catch (fault) {
        if (fault instanceof GraphBehindFault) goBack();
        throw fault;
      }
    },
  };
  let consumer = await open(watched);
  let timer: NodeJS.Timeout;
  const check = async () => {
    // A graph that does not answer is checked again.
    if (reopening === null && (await hasLost().catch(() => false)) && !closed) goBack();
    if (!closed) schedule();
  };
  const schedule = () => {
    timer = setTimeout(() => void check(), CHECK_EVERY_MS);
  };
  schedule();
  return {
    ready: () => reopening === null && consumer.ready(),
    hindrances: () => consumer.hindrances(),
    lag: () => consumer.lag(),
    async close() {
      closed = true;
      clearTimeout(timer);
      await reopening;
      await consumer.close();
    },
  };
}
