import { type RejectionRecord, SURFACES } from '@playline/contracts';
import type { RecordEnvelope } from '../../record/envelope.ts';
import type { BatchRejections } from '../../rejections.ts';
import type { Rejected } from '../../scan/judge.ts';
import { FIELD, type Field, ROW_SHIFT, type ScannedBatch, textOf } from '../../scan/ranges.ts';

export const NO_REJECTIONS: BatchRejections = { records: [], omitted: 0 };

/** One for each message of a full batch: more errors than that would tell the sender nothing new. */
const BATCH_ERRORS_MAX = 100;
/**
 * Fewer of a small body: telling of an error costs more than judging it, and a hundred empty messages take 300 bytes.
 * An honest message has some hundred bytes, so one that is wrong in several fields is told of whole.
 */
const ERRORS_ALWAYS = 10;
const BYTES_PER_ERROR = 256;
/** What stands for a library that nobody named in the settings. */
const OTHER_LIBRARY = 'other';
/** Numbers and dots: anything else may be content. */
const VERSION = /^\d{1,6}(\.\d{1,6}){0,3}$/;
const QUOTE = 0x22;

/** What stands beside the errors. */
interface Told extends Pick<RecordEnvelope, 'environmentId' | 'receivedAt' | 'traceId'> {
  /** Names of client libraries that are told of; of any other one only that it is another. */
  readonly libraries: ReadonlySet<string>;
}

/**
 * What the log is told about rejected messages: what was wrong and which client said it, nothing of the content. Rejections
 * have no owner, so no erasure finds them: no text of a client gets there.
 */
export function toBatchRejections(
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

/** Text of a string field; '' where the value is none. */
function stringOf(batch: ScannedBatch, message: number, field: Field): string {
  const start = batch.starts[(message << ROW_SHIFT) + field]!;
  return start > 0 && batch.body[start - 1] === QUOTE ? textOf(batch, message, field) : '';
}
