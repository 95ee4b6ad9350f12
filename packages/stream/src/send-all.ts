import type { OutgoingRecord, Producer } from './ports.ts';

/**
 * Publishes records and resolves when all of them are acknowledged; none are acknowledged at once. A promise a call, for
 * callers that wait: the hot path gives `send` a callback.
 * @throws the producer's fault
 */
export function sendAll(producer: Pick<Producer, 'send'>, records: readonly OutgoingRecord[]): Promise<void> {
  return new Promise((resolve, reject) => {
    if (records.length === 0) return resolve();
    producer.send(records, (fault) => (fault === null ? resolve() : reject(fault)));
  });
}
