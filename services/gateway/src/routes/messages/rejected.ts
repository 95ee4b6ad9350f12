import { type RejectionRecord, SURFACES } from '@playline/contracts';
import { FIELD, type Field, type RecordEnvelope, ROW_SHIFT, type ScannedBatch, textOf } from '@playline/events';
import type { BatchRejections } from '../../rejections.ts';
import type { Rejected } from '../../scan/index.ts';

export const NO_REJECTIONS: BatchRejections = { records: [], omitted: 0 };

/** One a message of a full batch: whoever sends worse learns nothing more from the rest. */
const BATCH_ERRORS_MAX = 100;
/**
 * Fewer of a small body: telling of an error costs more than judging it, and a hundred empty messages take 300 bytes.
 * An honest message has some hundred bytes, so one that is wrong in several fields is told of whole.
 */
const ERRORS_ALWAYS = 10;
const BYTES_PER_ERROR = 256;
/** Names and versions of client libraries are shorter; more would be content. */
const LIBRARY_CODE_POINTS_MAX = 64;
const UTF16_UNITS_PER_CODE_POINT = 2;
const QUOTE = 0x22;

/** What the log is told about rejected messages: what was wrong and which client said it, nothing of the content. */
export function toBatchRejections(
  rejected: readonly Rejected[],
  batch: ScannedBatch,
  { environmentId, receivedAt, traceId }: Pick<RecordEnvelope, 'environmentId' | 'receivedAt' | 'traceId'>,
): BatchRejections {
  const records: RejectionRecord[] = [];
  const recordsMax = Math.min(BATCH_ERRORS_MAX, ERRORS_ALWAYS + Math.floor(batch.body.length / BYTES_PER_ERROR));
  let omitted = 0;
  for (const { message, faults } of rejected) {
    const taken = faults.slice(0, recordsMax - records.length);
    omitted += faults.length - taken.length;
    if (taken.length === 0) continue;
    const origin = originOf(batch, message);
    for (const { error } of taken)
      records.push({ environmentId, code: error.code, field: error.field, ...origin, receivedAt, traceId });
  }
  return { records, omitted };
}

type Origin = Pick<RejectionRecord, 'surface' | 'library' | 'libraryVersion'>;

function originOf(batch: ScannedBatch, message: number): Origin {
  const surface = stringOf(batch, message, FIELD.surface);
  return {
    surface: SURFACES.find((name) => name === surface) ?? '',
    library: cutText(stringOf(batch, message, FIELD.library)),
    libraryVersion: cutText(stringOf(batch, message, FIELD.libraryVersion)),
  };
}

/** Text of a string field; '' where the value is none. */
function stringOf(batch: ScannedBatch, message: number, field: Field): string {
  const start = batch.starts[(message << ROW_SHIFT) + field]!;
  return start > 0 && batch.body[start - 1] === QUOTE ? textOf(batch, message, field) : '';
}

/** The first characters of a text, as a copy: a slice would keep the whole text alive while the brokers are waited for. */
function cutText(text: string): string {
  if (text.length <= LIBRARY_CODE_POINTS_MAX) return text.toWellFormed();
  const units = text.slice(0, LIBRARY_CODE_POINTS_MAX * UTF16_UNITS_PER_CODE_POINT);
  return [...units].slice(0, LIBRARY_CODE_POINTS_MAX).join('').toWellFormed();
}
