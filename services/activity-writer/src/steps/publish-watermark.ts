import type { Watermarks } from '@playline/chain';
import { RetryableFault } from '@playline/stream';

/**
 * Creates the step that publishes the time, in epoch microseconds, up to which every row of a partition is stored.
 * @param onPublished called with each watermark that Redis has stored
 * @throws RetryableFault
 */
export function createPublishWatermark(
  watermarks: Pick<Watermarks, 'publish'>,
  onPublished: (partition: number, us: number) => void,
) {
  return async (partition: number, us: number): Promise<void> => {
    try {
      await watermarks.publish(partition, us);
    } catch (cause) {
      throw new RetryableFault('the watermark is not published', { cause });
    }
    onPublished(partition, us);
  };
}

/** Creates the function that reads the watermark of a partition; 0 when none is published. @throws RetryableFault */
export function createReadWatermark(watermarks: Pick<Watermarks, 'read'>) {
  return async (partition: number): Promise<number> => {
    try {
      return (await watermarks.read(partition)) ?? 0;
    } catch (cause) {
      throw new RetryableFault('the watermark is not read', { cause });
    }
  };
}
