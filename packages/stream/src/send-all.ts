import type { OutgoingRecord, Producer } from './ports.ts';

/**
 * Publishes records and resolves when all of them are acknowledged; at once for an empty list. Each call costs a
 * promise, so the hot path uses `send` with a callback instead.
 * @throws the producer's fault
 */
export function sendAll(producer: Pick<Producer, 'send'>, records: readonly OutgoingRecord[]): Promise<void> {
  return new Promise((resolve, reject) => {
    if (records.length === 0) return resolve();
    producer.send(records, (fault) => (fault === null ? resolve() : reject(fault)));
  });
}
