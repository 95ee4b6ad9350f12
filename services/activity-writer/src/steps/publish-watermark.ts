import type { Watermarks } from '@playline/chain';
import { RetryableFault } from '@playline/stream';
import type { WriterMetrics } from '../writer-metrics.ts';

/** Creates the step that says up to where a partition is known: every row up to there stands. @throws RetryableFault */
export function createPublishWatermark(watermarks: Watermarks, metrics: Pick<WriterMetrics, 'setWatermark'>) {
  return async (partition: number, us: number): Promise<void> => {
    try {
      await watermarks.publish(partition, us);
    } catch (cause) {
      throw new RetryableFault('the watermark is not published', { cause });
    }
    metrics.setWatermark(partition, us);
  };
}

/** Creates the question how far a partition is known, 0 where nobody knows. @throws RetryableFault */
export function createReadWatermark(watermarks: Watermarks) {
  return async (partition: number): Promise<number> => {
    try {
      return (await watermarks.read(partition)) ?? 0;
    } catch (cause) {
      throw new RetryableFault('the watermark is not read', { cause });
    }
  };
}
