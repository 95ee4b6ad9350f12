import {
  eventContextSchema,
  messageSchema,
  type RejectedMessage,
  type RejectionRecord,
  SURFACES,
  WHOLE_MESSAGE,
} from '@playline/contracts';
import type { RecordEnvelope } from '@playline/events';
import type { BatchRejections } from '../../rejections.ts';

export const NO_REJECTIONS: BatchRejections = { records: [], omitted: 0 };

/** One a message of a full batch: whoever sends worse learns nothing more from the rest. */
const BATCH_ERRORS_MAX = 100;
/** Names and versions of client libraries are shorter; more would be content. */
const LIBRARY_CODE_POINTS_MAX = 64;
const UTF16_UNITS_PER_CODE_POINT = 2;

const FIELD_NAMES: ReadonlySet<string> = new Set([
  WHOLE_MESSAGE,
  ...Object.keys(messageSchema.shape),
  ...Object.keys(eventContextSchema.shape).map((name) => `context.${name}`),
]);

/**
 * What the log is told about rejected messages: what was wrong and which client said it, nothing of the content.
 * @param messages `messages` of the body, which may hold anything
 */
export function toBatchRejections(
  messages: readonly unknown[],
  rejected: readonly RejectedMessage[],
  { environmentId, receivedAt, traceId }: Pick<RecordEnvelope, 'environmentId' | 'receivedAt' | 'traceId'>,
): BatchRejections {
  const records: RejectionRecord[] = [];
  let omitted = 0;
  for (const { index, errors } of rejected) {
    const taken = errors.slice(0, BATCH_ERRORS_MAX - records.length);
    omitted += errors.length - taken.length;
    if (taken.length === 0) continue;
    const origin = originOf(messages[index]);
    for (const { code, field } of taken)
      records.push({ environmentId, code, field: toFieldName(field), ...origin, receivedAt, traceId });
  }
  return { records, omitted };
}

/** A name of our own contract; anything else could be a client's word. */
function toFieldName(field: string): string {
  const outer = field.split('.', 1)[0]!;
  return [field, outer].find((name) => FIELD_NAMES.has(name)) ?? WHOLE_MESSAGE;
}

type Origin = Pick<RejectionRecord, 'surface' | 'library' | 'libraryVersion'>;

function originOf(message: unknown): Origin {
  const { surface, context } = fieldsOf(message);
  const { library, libraryVersion } = fieldsOf(context);
  return {
    surface: SURFACES.find((name) => name === surface) ?? '',
    library: cutText(library),
    libraryVersion: cutText(libraryVersion),
  };
}

/** Fields of a value that may be anything; of a message that is none, none. */
function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

/** The first characters of a text, as a copy: a slice would keep the whole text alive while the brokers are waited for. */
function cutText(value: unknown): string {
  if (typeof value !== 'string') return '';
  if (value.length <= LIBRARY_CODE_POINTS_MAX) return value.toWellFormed();
  const units = value.slice(0, LIBRARY_CODE_POINTS_MAX * UTF16_UNITS_PER_CODE_POINT);
  return [...units].slice(0, LIBRARY_CODE_POINTS_MAX).join('').toWellFormed();
}
