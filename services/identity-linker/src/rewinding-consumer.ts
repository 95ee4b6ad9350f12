import { GraphBehindFault } from '@playline/people';
import type { BatchHandler, Consumer } from '@playline/stream';

export interface RewindingOptions {
  open(handler: BatchHandler): Promise<Consumer>;
  /** Called when the graph has lost facts, before the consumer is closed. */
  onRewind(): void;
}

/**
 * Opens a consumer that goes back when the graph has lost applied facts. The only way to move a position back is to
 * close the consumer, open it again and determine the start. It is not ready meanwhile.
 */
export async function openRewindingConsumer(
  handler: BatchHandler,
  { open, onRewind }: RewindingOptions,
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
  return {
    ready: () => reopening === null && consumer.ready(),
    hindrances: () => consumer.hindrances(),
    lag: () => consumer.lag(),
    async close() {
      closed = true;
      await reopening;
      await consumer.close();
    },
  };
}
