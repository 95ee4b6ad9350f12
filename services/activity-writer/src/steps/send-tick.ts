import { TICK_HEADER } from '@playline/contracts';
import type { Producer, StreamRecord } from '@playline/stream';

/** A record without a value that says so of itself. */
export const isTick = ({ value, headers }: Pick<StreamRecord, 'value' | 'headers'>): boolean =>
  value === null && Object.hasOwn(headers, TICK_HEADER);

/** Resolves when the partition's log has a tick, with the log's time of it. */
export type SendTick = (partition: number) => Promise<number>;

/**
 * Creates the step that puts a tick behind everything that a partition holds. No client reads the broker's clock: the time
 * that the log gives to the tick says how far the partition is known.
 */
export function createSendTick(producer: Pick<Producer, 'sendPlaced'>, topic: string): SendTick {
  return async (partition) => {
    const tick = { topic, partition, key: null, value: null, headers: { [TICK_HEADER]: '' } };
    const { loggedAtMs } = await producer.sendPlaced(tick);
    if (loggedAtMs === null)
      throw new Error(`${topic} must keep the broker's times: message.timestamp.type=LogAppendTime`);
    return loggedAtMs;
  };
}
