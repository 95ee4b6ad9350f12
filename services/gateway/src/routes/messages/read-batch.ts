import { judgeBatch, type TimeWindow } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import {
  createScannedEncoder,
  type EncodedRecord,
  FIELD,
  type KeyOfBytes,
  type RecordEnvelope,
  type ScannedBatch,
  textOf,
} from '@playline/events';
import type { BatchRejections } from '../../rejections.ts';
import { BODY_FAULT, createScanner, judgeScanned, type RejectionEntry } from '../../scan/index.ts';
import { NO_REJECTIONS, toBatchRejections } from './rejected.ts';

/** A body turned into records and the answer to give once they are stored. */
export interface ReadBatch {
  readonly records: EncodedRecord[];
  /** Places in `records` of messages that may link two identities. */
  readonly linking: number[];
  readonly accepted: number;
  readonly rejected: number;
  /** What the answer says of rejected messages. */
  readonly entries: readonly RejectionEntry[];
  /** For the log, once the batch is answered. */
  readonly rejections: BatchRejections;
}

export interface BatchContext {
  readonly window: TimeWindow;
  readonly envelope: RecordEnvelope;
  readonly keyOf: KeyOfBytes;
}

/** @throws PublicError VALIDATION_ERROR when the body is not UTF-8, not JSON or no batch */
export type BatchReader = (body: Buffer, context: BatchContext) => ReadBatch;

/**
 * Builds a reader: one scan of the bytes finds every field of every message, and what it doubts is explained message by
 * message. No body is ever parsed into objects, so that none costs more than its bytes.
 * @param libraries names of client libraries that rejections tell of
 */
export function createBatchReader(libraries: ReadonlySet<string>): BatchReader {
  const scanner = createScanner();
  const encodeScanned = createScannedEncoder();
  return (body, { window, envelope, keyOf }) => {
    const count = scanner.scan(body, window);
    if (count < 0) throw toError(count);
    const { state } = scanner;
    const { rejected, entries } = judgeScanned(state);
    return {
      records: encodeScanned(state.batch, envelope, keyOf),
      linking: linkingOf(state.batch),
      accepted: count - rejected.length,
      rejected: rejected.length,
      entries,
      rejections:
        rejected.length === 0 ? NO_REJECTIONS : toBatchRejections(rejected, state.batch, { ...envelope, libraries }),
    };
  };
}

function linkingOf(batch: ScannedBatch): number[] {
  const linking: number[] = [];
  let place = 0;
  for (let message = 0; message < batch.count; message++) {
    if (batch.accepted[message] === 0) continue;
    const type = textOf(batch, message, FIELD.type);
    if (type === 'identify' || type === 'alias') linking.push(place);
    place++;
  }
  return linking;
}

/** A document with each fault that a batch as a whole may have: the contract has the words for it. */
const FAULTY_DOCUMENTS: Readonly<Record<number, unknown>> = {
  [BODY_FAULT.notAnObject]: [],
  [BODY_FAULT.noMessages]: {},
  [BODY_FAULT.tooFew]: { messages: [] },
  [BODY_FAULT.tooMany]: { messages: Array.from({ length: 101 }, () => 0) },
};
const NO_RULES = { window: { fromMs: 0, toMs: 0 }, sources: [] };

function toError(fault: number): PublicError {
  if (fault !== BODY_FAULT.notJson) {
    const verdict = judgeBatch(FAULTY_DOCUMENTS[fault], NO_RULES);
    if (verdict.kind === 'fault')
      return new PublicError('VALIDATION_ERROR', { message: verdict.message, details: verdict.details });
  }
  return new PublicError('VALIDATION_ERROR', { message: 'The body is not valid UTF-8 JSON.' });
}
