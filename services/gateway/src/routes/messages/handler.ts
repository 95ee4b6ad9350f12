import {
  BATCH_BYTES_MAX,
  BATCH_ERROR_DETAILS,
  BATCH_ERRORS,
  frameRecord,
  type IdentityLinkRecord,
  identityLinkCodec,
  type RejectionCode,
  type RejectionRecord,
  SURFACES,
  type TimeWindow,
  TOPICS,
  toJsonError,
} from '@playline/contracts';
import { PublicError } from '@playline/errors';
import {
  type BodyPlan,
  type BytesInFlight,
  type Exchange,
  planJsonBody,
  type Reservation,
  type Route,
  useBody,
} from '@playline/http';
import { toLinkFact, type Utf8IdentityKeyer } from '@playline/people';
import type { OutgoingRecord } from '@playline/stream';
import { ALL_REJECTED, type Authorise, type CountUse, countFailedRequest } from '../../authorise.ts';
import type { GatewayMetrics } from '../../metrics.ts';
import { bytesOf, type Publish } from '../../publish.ts';
import { type Allowance, type LimitMessages, unitsOf } from '../../rate-limits/message-limit.ts';
import {
  createBatchEncoder,
  type EncodedRecord,
  type KeyOfBytes,
  type RecordEnvelope,
} from '../../record/encode-batch.ts';
import { type BatchRejections, type PublishRejections, rejectionLogBytesMax } from '../../rejections.ts';
import { BODY_FAULT, createScanner, type Rejected, type RejectionEntry, validateScanned } from '../../scan/batch.ts';
import { FIELD, type Field, ROW_SHIFT, type ScannedBatch, textOf, UUID_BYTES } from '../../scan/ranges.ts';
import type { SchemaIds } from '../../schema-ids.ts';

export interface MessagesRouteParts {
  authorise: Authorise;
  limit: LimitMessages;
  bytesInFlight: BytesInFlight;
  publish: Publish;
  publishRejections: PublishRejections;
  keyer: Utf8IdentityKeyer;
  schemaIds: () => SchemaIds | null;
  topicPrefix: string;
  /** Milliseconds, both inclusive. */
  eventAgeMaxMs: number;
  eventAheadMaxMs: number;
  /** Names that rejections may contain. */
  libraries: ReadonlySet<string>;
  metrics: GatewayMetrics;
  usage: CountUse;
}

/** Typical batches compress six- to tenfold. Used for admission only. */
const COMPRESSION_GUESS = 8;
/** A few dozen messages. */
const CHUNKED_GUESS_BYTES = 64 * 1024;

/**
 * POST /v1/audience/messages: contract, "Ingest". Steps: key, limit, headers of the body, memory, body, messages, key
 * again, brokers, answer.
 */
export function createMessagesRoute(parts: MessagesRouteParts): Route {
  const receive = createReceive(parts);
  return {
    method: 'POST',
    path: '/v1/audience/messages',
    hot: true,
    cors: true,
    handle: async (exchange) => {
      const authorised = parts.authorise(exchange);
      const key = authorised instanceof Promise ? await authorised : authorised;
      try {
        const limited = parts.limit(exchange, key);
        const allowance = limited instanceof Promise ? await limited : limited;
        const plan = planJsonBody(exchange.request, BATCH_BYTES_MAX);
        const reservation = parts.bytesInFlight.admit(key.projectId, guessBytes(plan));
        const reception = { plan, reservation, allowance };
        const { batch, outgoing, bodyBytes } = await receive(exchange, key.environmentId, reception);
        countBatch(parts.metrics, batch);
        // A 200 is sent only after the brokers have acknowledged every record.
        if (outgoing.length > 0) await parts.publish(outgoing, reservation);
        parts.metrics.onAccepted(batch.accepted);
        exchange.answer(batch.accepted > 0 ? 200 : 400, toAnswerText(batch));
        const { accepted, rejected } = batch;
        if (accepted > 0) parts.usage.used(key, accepted, rejected);
        else parts.usage.refused(key, { reason: ALL_REJECTED, traceId: exchange.traceId, rejected });
        // After the answer. A batch answered with 500 is sent again.
        if (rejected > 0)
          parts.publishRejections(batch.rejections, rejectionLogBytesMax(exchange.request, bodyBytes, outgoing));
      } catch (error) {
        countFailedRequest(parts.usage, key, { exchange, error });
        throw error;
      }
    },
  };
}

interface Reception {
  plan: BodyPlan;
  reservation: Reservation;
  allowance: Allowance;
}

/** Charged before the body is read, so that requests of one packet are counted one by one. */
const ADMISSION_UNITS = 1;

/** Reads the records from a body; releases its bytes on failure. What arrived is charged in any case. */
function createReceive(parts: MessagesRouteParts) {
  const readMessages = createMessagesReader(parts);
  return async (exchange: Exchange, environmentId: string, { plan, reservation, allowance }: Reception) => {
    allowance.charge(ADMISSION_UNITS);
    let received = 0;
    let bytes = 0;
    const onBytes = (soFar: number) => {
      received = bytes = soFar;
    };
    // Bytes that decompress to nothing are work too.
    const onDecoded = (decoded: number) => {
      bytes = Math.max(received, decoded);
    };
    const use = (body: Buffer) => {
      reservation.grow(body.length);
      return readMessages(exchange, environmentId, body);
    };
    try {
      const messages = await useBody(exchange.request, plan, { reservation, onBytes, onDecoded, use });
      // The key may have ended while the body arrived. Usually answered from memory.
      const stillAuthorised = parts.authorise(exchange);
      if (stillAuthorised instanceof Promise) await stillAuthorised;
      chargeRest(allowance, unitsOf(messages.batch.accepted + messages.batch.rejected, bytes));
      if (messages.outgoing.length === 0) reservation.release();
      else reservation.resize(bytesOf(messages.outgoing));
      return messages;
    } catch (error) {
      reservation.release();
      chargeRest(allowance, unitsOf(0, bytes));
      throw error;
    }
  };
}

/** @param units total cost of the request */
function chargeRest(allowance: Allowance, units: number): void {
  if (units !== ADMISSION_UNITS) allowance.charge(units - ADMISSION_UNITS);
}

function createMessagesReader(parts: MessagesRouteParts) {
  const { keyer, schemaIds, topicPrefix, eventAgeMaxMs, eventAheadMaxMs } = parts;
  const readBatch = createBatchReader(parts.libraries);
  const topics = { messages: topicPrefix + TOPICS.messages.name, links: topicPrefix + TOPICS.identityLinks.name };
  return (exchange: Exchange, environmentId: string, body: Buffer) => {
    const ids = schemaIds();
    if (ids === null)
      throw new PublicError('INTERNAL_SERVER_ERROR', { cause: new Error('the schema ids are not known yet') });
    const { traceId, traceparent } = exchange;
    const receivedAt = Date.now();
    const batch = readBatch(body, {
      window: { fromMs: receivedAt - eventAgeMaxMs, toMs: receivedAt + eventAheadMaxMs },
      envelope: { schemaId: ids.messages, environmentId, receivedAt, traceId },
      keyOf: (kind, id) => keyer.ofBytes(environmentId, kind, id),
    });
    const context = { topics, environmentId, traceparent, linkSchemaId: ids.identityLinks };
    return { batch, outgoing: toOutgoing(batch, context), bodyBytes: body.length };
  };
}

interface OutgoingContext {
  readonly topics: { readonly messages: string; readonly links: string };
  readonly environmentId: string;
  readonly traceparent: string;
  readonly linkSchemaId: number;
}

/**
 * From this size on a value's record has `traceparent` (69 bytes) as a header; smaller records would exceed
 * `AMPLIFICATION_MAX`. Every value has the trace id.
 */
const TRACED_VALUE_BYTES_MIN = 276;
const NO_HEADERS = {};

/** The messages of a batch, and a link fact for each identify and alias that links. */
function toOutgoing(batch: ReadBatch, context: OutgoingContext): OutgoingRecord[] {
  const headers = { traceparent: context.traceparent };
  const topic = context.topics.messages;
  const outgoing: OutgoingRecord[] = batch.records.map(({ key, value }) => {
    return { topic, key, value, headers: value.length < TRACED_VALUE_BYTES_MIN ? NO_HEADERS : headers };
  });
  for (const link of batch.links) {
    const value = frameRecord(context.linkSchemaId, identityLinkCodec.encode(link));
    outgoing.push({ topic: context.topics.links, key: Buffer.from(context.environmentId), value, headers: NO_HEADERS });
  }
  return outgoing;
}

function guessBytes({ declaredBytes, coding }: BodyPlan): number {
  if (declaredBytes === null) return CHUNKED_GUESS_BYTES;
  return Math.min(coding === null ? declaredBytes : declaredBytes * COMPRESSION_GUESS, BATCH_BYTES_MAX);
}

function countBatch(metrics: GatewayMetrics, { rejected, entries }: ReadBatch): void {
  metrics.onBatch(rejected > 0);
  if (rejected === 0) return;
  const counts = new Map<RejectionCode, number>();
  for (const { faults } of entries)
    for (const { error } of faults) counts.set(error.code, (counts.get(error.code) ?? 0) + 1);
  for (const [code, count] of counts) metrics.onRejected(code, count);
}

/** JSON text of a MessagesResponse. Batches may have thousands of errors, so their texts are made once per process. */
export function toAnswerText({ accepted, rejected, entries }: Pick<ReadBatch, 'accepted' | 'rejected' | 'entries'>) {
  let rejections = '';
  for (const entry of entries) rejections += (rejections === '' ? '' : ',') + toEntryText(entry);
  return `{"success":${accepted > 0},"accepted":${accepted},"rejected":${rejected},"rejections":[${rejections}]}`;
}

function toEntryText({ messageId, faults }: RejectionEntry): string {
  let errors = '';
  for (const { text } of faults) errors += (errors === '' ? '' : ',') + text;
  return `{"messageId":${JSON.stringify(messageId)},"errors":[${errors}]}`;
}

/** The records of a body, and the parts of its answer. */
export interface ReadBatch {
  readonly records: EncodedRecord[];
  /** One for each accepted identify and alias that links. */
  readonly links: readonly IdentityLinkRecord[];
  readonly accepted: number;
  readonly rejected: number;
  /** Rejected messages, as the answer lists them. */
  readonly entries: readonly RejectionEntry[];
  /** Published after the answer. */
  readonly rejections: BatchRejections;
}

interface BatchContext {
  readonly window: TimeWindow;
  readonly envelope: RecordEnvelope;
  readonly keyOf: KeyOfBytes;
}

/** @throws PublicError VALIDATION_ERROR when the body is not a batch */
type BatchReader = (body: Buffer, context: BatchContext) => ReadBatch;

/**
 * One scan finds every field of every message; only doubtful messages are examined one by one.
 * @param libraries names that rejection records may contain
 */
export function createBatchReader(libraries: ReadonlySet<string>): BatchReader {
  const scanner = createScanner();
  const encodeBatch = createBatchEncoder();
  return (body, { window, envelope, keyOf }) => {
    const count = scanner.scan(body, window);
    if (count < 0) throw toError(count, body);
    const { state } = scanner;
    const { rejected, entries } = validateScanned(state);
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

function linksOf(batch: ScannedBatch, envelope: RecordEnvelope): IdentityLinkRecord[] {
  const { environmentId, receivedAt, traceId } = envelope;
  const links: IdentityLinkRecord[] = [];
  for (let message = 0; message < batch.count; message++) {
    if (batch.accepted[message] === 0) continue;
    const type = textOf(batch, message, FIELD.type);
    if (type !== 'identify' && type !== 'alias') continue;
    const text = (field: Field) => textOf(batch, message, field);
    const id = message * UUID_BYTES;
    const link = toLinkFact({
      environmentId,
      receivedAt,
      traceId,
      type,
      // The next request overwrites the memory of the scan.
      messageId: Buffer.from(batch.messageIds.subarray(id, id + UUID_BYTES)),
      eventTime: batch.eventTimes[message]!,
      anonymousId: text(FIELD.anonymousId),
      userId: text(FIELD.userId),
      identityType: text(FIELD.identityType),
      fromId: text(FIELD.fromId),
      fromType: text(FIELD.fromType),
      toId: text(FIELD.toId),
      toType: text(FIELD.toType),
    });
    if (link !== null) links.push(link);
  }
  return links;
}

const NO_REJECTIONS: BatchRejections = { records: [], omitted: 0 };

/** One for each message of a full batch. */
const BATCH_ERRORS_MAX = 100;
/** Small bodies record few errors: a hundred empty messages take only 300 bytes. */
const ERRORS_ALWAYS = 10;
const BYTES_PER_ERROR = 256;
/** Recorded instead of libraries that the settings do not name. */
const OTHER_LIBRARY = 'other';
/** Other text may be content. */
const VERSION = /^\d{1,6}(\.\d{1,6}){0,3}$/;
const QUOTE = 0x22;

/** Fields of each record besides the error. */
interface RejectionContext extends Pick<RecordEnvelope, 'environmentId' | 'receivedAt' | 'traceId'> {
  readonly libraries: ReadonlySet<string>;
}

/** Without content: rejections have no owner, so an erasure would not find it. */
function toBatchRejections(
  rejected: readonly Rejected[],
  batch: ScannedBatch,
  { environmentId, receivedAt, traceId, libraries }: RejectionContext,
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

/** '' when the value is not a string. */
function stringOf(batch: ScannedBatch, message: number, field: Field): string {
  const start = batch.starts[(message << ROW_SHIFT) + field]!;
  return start > 0 && batch.body[start - 1] === QUOTE ? textOf(batch, message, field) : '';
}

const FAULT_MESSAGES = new Map<number, string>(
  Object.entries(BATCH_ERRORS).map(([name, text]) => [BODY_FAULT[name as keyof typeof BATCH_ERRORS], text]),
);

function toError(fault: number, body: Buffer): PublicError {
  const message = FAULT_MESSAGES.get(fault);
  const answer = message === undefined ? toJsonError(body) : { message, details: BATCH_ERROR_DETAILS };
  return new PublicError('VALIDATION_ERROR', answer);
}
