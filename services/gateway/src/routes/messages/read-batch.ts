import {
  type IdentityLinkRecord,
  judgeBatch,
  type RejectionRecord,
  refuseJson,
  SURFACES,
  type TimeWindow,
} from '@playline/contracts';
import { PublicError } from '@playline/errors';
import { toLinkFact } from '@playline/people';
import { createBatchEncoder } from '../../record/encode-batch.ts';
import type { EncodedRecord, KeyOfBytes, RecordEnvelope } from '../../record/envelope.ts';
import type { BatchRejections } from '../../rejections.ts';
import { BODY_FAULT, createScanner } from '../../scan/batch.ts';
import { judgeScanned, type Rejected, type RejectionEntry } from '../../scan/judge.ts';
import { FIELD, type Field, ROW_SHIFT, type ScannedBatch, textOf, UUID_BYTES } from '../../scan/ranges.ts';

/** The records of a body, and the parts of the answer to send once they are stored. */
export interface ReadBatch {
  readonly records: EncodedRecord[];
  /** One for each accepted identify and alias that links two identities. */
  readonly links: readonly IdentityLinkRecord[];
  readonly accepted: number;
  readonly rejected: number;
  /** Rejected messages, as the answer lists them. */
  readonly entries: readonly RejectionEntry[];
  /** Published once the batch is answered. */
  readonly rejections: BatchRejections;
}

export interface BatchContext {
  readonly window: TimeWindow;
  readonly envelope: RecordEnvelope;
  readonly keyOf: KeyOfBytes;
}

/** @throws PublicError VALIDATION_ERROR when the body is not UTF-8, not JSON or not a batch */
export type BatchReader = (body: Buffer, context: BatchContext) => ReadBatch;

/**
 * Builds a reader. One scan of the bytes finds every field of every message; doubtful messages are examined one by one.
 * No body is parsed into objects, so the cost depends only on its bytes.
 * @param libraries names of client libraries that rejection records may contain
 */
export function createBatchReader(libraries: ReadonlySet<string>): BatchReader {
  const scanner = createScanner();
  const encodeBatch = createBatchEncoder();
  return (body, { window, envelope, keyOf }) => {
    const count = scanner.scan(body, window);
    if (count < 0) throw toError(count, body);
    const { state } = scanner;
    const { rejected, entries } = judgeScanned(state);
    return {
      records: encodeBatch(state.batch, envelope, keyOf),
      links: linksOf(state.batch, envelope),
      accepted: count - rejected.length,
      rejected: rejected.length,
      entries,
      rejections:
        rejected.length === 0 ? NO_REJECTIONS : toBatchRejections(rejected, state.batch, { ...envelope, libraries }),
    };
  };
}

/** The link facts of the accepted messages of a batch. */
function linksOf(batch: ScannedBatch, envelope: RecordEnvelope): IdentityLinkRecord[] {
  const links: IdentityLinkRecord[] = [];
  for (let message = 0; message < batch.count; message++) {
    if (batch.accepted[message] === 0) continue;
    const type = textOf(batch, message, FIELD.type);
    if (type !== 'identify' && type !== 'alias') continue;
    const link = linkOf(batch, message, { type, envelope });
    if (link !== null) links.push(link);
  }
  return links;
}

function linkOf(
  batch: ScannedBatch,
  message: number,
  { type, envelope }: { type: string; envelope: RecordEnvelope },
): IdentityLinkRecord | null {
  const { environmentId, receivedAt, traceId } = envelope;
  const id = message * UUID_BYTES;
  return toLinkFact({
    environmentId,
    receivedAt,
    traceId,
    type,
    // A copy, because the next request overwrites the memory of the scan.
    messageId: Buffer.from(batch.messageIds.subarray(id, id + UUID_BYTES)),
    eventTime: batch.eventTimes[message]!,
    anonymousId: textOf(batch, message, FIELD.anonymousId),
    userId: textOf(batch, message, FIELD.userId),
    identityType: textOf(batch, message, FIELD.identityType),
    fromId: textOf(batch, message, FIELD.fromId),
    fromType: textOf(batch, message, FIELD.fromType),
    toId: textOf(batch, message, FIELD.toId),
    toType: textOf(batch, message, FIELD.toType),
  });
}

const NO_REJECTIONS: BatchRejections = { records: [], omitted: 0 };

/** One for each message of a full batch: more errors would be of no use to the sender. */
const BATCH_ERRORS_MAX = 100;
/**
 * Recorded even of a small body. Recording an error costs more than finding it, and a hundred empty messages take only
 * 300 bytes, so small bodies may record few. It is enough for all errors of one real message of some hundred bytes.
 */
const ERRORS_ALWAYS = 10;
const BYTES_PER_ERROR = 256;
/** Recorded instead of a library that the settings do not name. */
const OTHER_LIBRARY = 'other';
/** Numbers and dots only, because any other text may be content. */
const VERSION = /^\d{1,6}(\.\d{1,6}){0,3}$/;
const QUOTE = 0x22;

/** Fields of each record besides the error. */
interface Told extends Pick<RecordEnvelope, 'environmentId' | 'receivedAt' | 'traceId'> {
  /** Client libraries to record by name; all others are recorded as `other`. */
  readonly libraries: ReadonlySet<string>;
}

/**
 * The records of rejected messages: the error and the client library, no content. Rejections have no owner, so an
 * erasure cannot find them, and they must not contain text written by a client.
 */
function toBatchRejections(
  rejected: readonly Rejected[],
  batch: ScannedBatch,
  { environmentId, receivedAt, traceId, libraries }: Told,
): BatchRejections {
  const records: RejectionRecord[] = [];
  const recordsMax = Math.min(BATCH_ERRORS_MAX, ERRORS_ALWAYS + Math.floor(batch.body.length / BYTES_PER_ERROR));
  let omitted = 0;
  for (const { message, faults } of rejected) {
    const taken = faults.slice(0, recordsMax - records.length);
    omitted += faults.length - taken.length;
    if (taken.length === 0) continue;
    const origin = originOf(batch, message, libraries);
    for (const { error } of taken)
      records.push({ environmentId, code: error.code, field: error.field, ...origin, receivedAt, traceId });
  }
  return { records, omitted };
}

type Origin = Pick<RejectionRecord, 'surface' | 'library' | 'libraryVersion'>;

function originOf(batch: ScannedBatch, message: number, libraries: ReadonlySet<string>): Origin {
  const [surface, library, version] = [FIELD.surface, FIELD.library, FIELD.libraryVersion].map((field) =>
    stringOf(batch, message, field),
  ) as [string, string, string];
  return {
    surface: SURFACES.find((name) => name === surface) ?? '',
    library: library === '' || libraries.has(library) ? library : OTHER_LIBRARY,
    libraryVersion: VERSION.test(version) ? version : '',
  };
}

/** Text of a string field; '' when the value is not a string. */
function stringOf(batch: ScannedBatch, message: number, field: Field): string {
  const start = batch.starts[(message << ROW_SHIFT) + field]!;
  return start > 0 && batch.body[start - 1] === QUOTE ? textOf(batch, message, field) : '';
}

/** One document for each fault of a whole batch. The contract's own check of it gives the error text. */
const FAULTY_DOCUMENTS: Readonly<Record<number, unknown>> = {
  [BODY_FAULT.notAnObject]: [],
  [BODY_FAULT.noMessages]: {},
  [BODY_FAULT.tooFew]: { messages: [] },
  [BODY_FAULT.tooMany]: { messages: Array.from({ length: 101 }, () => 0) },
};
const NO_RULES = { window: { fromMs: 0, toMs: 0 }, sources: [] };

function toError(fault: number, body: Buffer): PublicError {
  if (fault !== BODY_FAULT.notJson) {
    const verdict = judgeBatch(FAULTY_DOCUMENTS[fault], NO_RULES);
    if (verdict.kind === 'fault')
      return new PublicError('VALIDATION_ERROR', { message: verdict.message, details: verdict.details });
  }
  return new PublicError('VALIDATION_ERROR', refuseJson(body));
}
