import { judgeBatch, type MessagesResponse, type TimeWindow } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import {
  createScannedEncoder,
  type EncodedRecord,
  encodeMessages,
  FIELD,
  type KeyOf,
  type RecordEnvelope,
  textOf,
} from '@playline/events';
import type { BatchRejections } from '../../rejections.ts';
import { createScanner, readDocument, UNDECIDED } from '../../scan/index.ts';
import { NO_REJECTIONS, toBatchRejections } from './rejected.ts';

/** A body turned into records and the answer to give once they are stored. */
export interface ReadBatch {
  readonly records: EncodedRecord[];
  /** Places in `records` of messages that may link two identities. */
  readonly linking: number[];
  readonly response: MessagesResponse;
  /** For the log, once the batch is answered. */
  readonly rejections: BatchRejections;
  readonly way: 'scan' | 'parse';
}

export interface BatchContext {
  readonly window: TimeWindow;
  readonly envelope: RecordEnvelope;
  readonly keyOf: KeyOf;
}

/** @throws PublicError VALIDATION_ERROR when the body is not UTF-8, not JSON or no batch */
export type BatchReader = (body: Buffer, context: BatchContext) => ReadBatch;

/** Builds a reader: a byte scan decides most batches; whatever it leaves undecided is parsed and judged in full. */
export function createBatchReader(): BatchReader {
  const scanner = createScanner();
  const encodeScanned = createScannedEncoder();
  return (body, context) => {
    const count = scanner.scan(body, context.window);
    if (count === UNDECIDED) return parseBatch(body, context);
    const { batch } = scanner;
    const linking: number[] = [];
    for (let message = 0; message < count; message++)
      if (mayLink(textOf(batch, message, FIELD.type))) linking.push(message);
    return {
      records: encodeScanned(batch, context.envelope, context.keyOf),
      linking,
      response: { success: true, accepted: count, rejected: 0, rejections: [] },
      rejections: NO_REJECTIONS,
      way: 'scan',
    };
  };
}

function parseBatch(body: Buffer, { window, envelope, keyOf }: BatchContext): ReadBatch {
  const read = readDocument(body);
  if (!read.ok) throw new PublicError('VALIDATION_ERROR', { message: 'The body is not valid UTF-8 JSON.' });
  const { sources } = read;
  const verdict = judgeBatch(read.document, { window, sources });
  if (verdict.kind === 'fault')
    throw new PublicError('VALIDATION_ERROR', { message: verdict.message, details: verdict.details });
  const messages = verdict.accepted.map(({ index, message }) => ({ ...sources[index], message }));
  const { messages: sent } = read.document as { messages: unknown[] };
  return {
    records: encodeMessages(messages, envelope, keyOf),
    linking: messages.flatMap(({ message }, place) => (mayLink(message.type) ? [place] : [])),
    response: verdict.response,
    rejections: toBatchRejections(sent, verdict.rejected, envelope),
    way: 'parse',
  };
}

function mayLink(type: string): boolean {
  return type === 'identify' || type === 'alias';
}
