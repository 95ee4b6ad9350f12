import type { IdentityLinkRecord, SchemaSource } from '@playline/contracts';
import type { Logger } from '@playline/runtime';
import { type BatchPosition, type OutgoingRecord, type StreamRecord, toDeadLetter } from '@playline/stream';
import { createDecodeFact } from './decode-fact.ts';

/** A link fact, and the record that holds it. */
export interface Found {
  readonly offset: number;
  readonly fact: IdentityLinkRecord;
  readonly record: StreamRecord;
}

/** A batch as it was read: its facts in their order, and what is none, as letters. */
export interface DecodedBatch {
  readonly found: readonly Found[];
  readonly deadLetters: readonly OutgoingRecord[];
  readonly firstLetter: { readonly offset: number; readonly reason: string } | null;
}

/**
 * Creates the step that reads the facts of a batch.
 * @param step named in its letters
 */
export function createDecodeBatch(schemaOf: SchemaSource, step: string) {
  const decodeFact = createDecodeFact(schemaOf);
  return async (records: readonly StreamRecord[]): Promise<DecodedBatch> => {
    const found: Found[] = [];
    const deadLetters: OutgoingRecord[] = [];
    let firstLetter: DecodedBatch['firstLetter'] = null;
    for (const record of records) {
      const answer = decodeFact(record);
      const decoded = answer instanceof Promise ? await answer : answer;
      if (decoded.kind === 'fact') found.push({ fact: decoded.fact, offset: record.offset, record });
      else {
        deadLetters.push(toDeadLetter({ record, reason: decoded.reason }, step));
        firstLetter ??= { offset: record.offset, reason: decoded.reason };
      }
    }
    return { found, deadLetters, firstLetter };
  };
}

/** Says that records of a batch are no facts, when any are not. */
export function tellDeadLetters(logger: Logger, { topic, partition }: BatchPosition, batch: DecodedBatch): void {
  const { firstLetter, deadLetters } = batch;
  if (firstLetter === null) return;
  logger.warn({ topic, partition, ...firstLetter, count: deadLetters.length }, 'records went to the dead letters');
}
