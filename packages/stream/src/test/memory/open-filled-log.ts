import { send } from '../producer-contract.ts';
import { createMemoryLog } from './index.ts';

/** Creates a log with one partition, and a function that appends `record 0`, `record 1` and so on to a topic. */
export function openFilledLog(topic: string) {
  const log = createMemoryLog({ partitions: 1 });
  const producer = log.openProducer();
  let sent = 0;
  const append = async (count: number) => {
    for (let i = 0; i < count; i++)
      await send(producer, [{ topic, key: null, value: Buffer.from(`record ${sent++}`) }]);
  };
  return { log, producer, append };
}
