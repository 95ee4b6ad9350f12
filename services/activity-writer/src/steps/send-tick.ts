import { TICK_HEADER } from '@playline/contracts';
import type { Producer, StreamRecord } from '@playline/stream';

/** Whether a record is a tick: it has no value, and the header of ticks. */
export const isTick = ({ value, headers }: Pick<StreamRecord, 'value' | 'headers'>): boolean =>
  value === null && Object.hasOwn(headers, TICK_HEADER);

/** Resolves when the tick is in the partition's log, with the time that the log gave it. */
export type SendTick = (partition: number) => Promise<number>;

/**
 * Creates the step that appends a tick to a partition. No client can read the broker's clock: the time that the log
 * gives to the tick shows up to when the partition is known.
 */
export function createSendTick(producer: Pick<Producer, 'sendForOffset'>, topic: string): SendTick {
  return async (partition) => {
    const tick = { topic, partition, key: null, value: null, headers: { [TICK_HEADER]: '' } };
    const { loggedAtMs } = await producer.sendForOffset(tick);
    if (loggedAtMs === null) throw new Error(`${topic} needs the broker's times: message.timestamp.type=LogAppendTime`);
    return loggedAtMs;
  };
}
