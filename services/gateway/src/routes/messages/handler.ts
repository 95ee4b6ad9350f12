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
import { BODY_ERROR, createScanner, type Rejection, type RejectionEntry, validateScanned } from '../../scan/batch.ts';
import { FIELD, type Field, ROW_SHIFT, readText, type ScannedBatch, UUID_BYTES } from '../../scan/ranges.ts';
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
  /** Limits of the time window in milliseconds, both inclusive. */
  eventAgeMaxMs: number;
  eventAheadMaxMs: number;
  /** Library names that rejection records may contain. */
  libraries: ReadonlySet<string>;
  metrics: GatewayMetrics;
  usage: CountUse;
}

/** An estimate for admission. Typical batches compress six- to tenfold. */
const COMPRESSION_ESTIMATE = 8;
/** An estimate for bodies without a length: a few dozen messages. */
const CHUNKED_ESTIMATE_BYTES = 64 * 1024;

/**
 * POST /v1/audience/messages: contract, "Ingest". Steps: check the key, apply the rate limit, check the headers,
 * reserve memory, read the body, validate the messages, check the key again, publish, respond.
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
        const reservation = parts.bytesInFlight.admit(key.projectId, estimateBytes(plan));
        const reception = { plan, reservation, allowance };
        const { batch, outgoing, bodyBytes } = await receive(exchange, key.environmentId, reception);
        countBatch(parts.metrics, batch);
        // A 200 is sent only after the brokers have acknowledged every record.
        if (outgoing.length > 0) await parts.publish(outgoing, reservation);
        parts.metrics.onMessages(key.environmentId, batch);
        if (exchange.span !== null) exchange.span.set(toAttributes(key.environmentId, batch));
        exchange.answer(batch.accepted > 0 ? 200 : 400, toResponseText(batch));
        const { accepted, rejected } = batch;
        if (accepted > 0) parts.usage.used(key, accepted, rejected);
        else parts.usage.refused(key, { reason: ALL_REJECTED, traceId: exchange.traceId, rejected });
        // Published after the response, because clients resend a batch after a 500.
        if (rejected > 0)
          parts.publishRejections(batch.rejections, rejectionLogBytesMax(exchange.request, bodyBytes, outgoing));
      } catch (error) {
        countFailedRequest(parts.usage, key, { exchange, error });
        throw error;
      }
    },
  };
}

const toAttributes = (environmentId: string, { accepted, rejected }: BatchData) => ({
  'playline.environment': environmentId,
  'playline.messages.accepted': accepted,
  'playline.messages.rejected': rejected,
});

interface Reception {
  plan: BodyPlan;
  reservation: Reservation;
  allowance: Allowance;
}

/** Charged before the body is read, so that requests in the same packet are limited individually. */
const ADMISSION_UNITS = 1;

/** Reads the records from a body. Releases the reservation on failure, but charges the bytes that arrived. */
function createReceive(parts: MessagesRouteParts) {
  const readMessages = createMessagesReader(parts);
  return async (exchange: Exchange, environmentId: string, { plan, reservation, allowance }: Reception) => {
    allowance.charge(ADMISSION_UNITS);
    let received = 0;
    let bytes = 0;
    const onBytes = (total: number) => {
      received = bytes = total;
    };
    // Bytes that decompress to nothing also cost time.
    const onDecoded = (decoded: number) => {
      bytes = Math.max(received, decoded);
    };
    const use = (body: Buffer) => {
      reservation.grow(body.length);
      return readMessages(exchange, environmentId, body);
    };
    try {
      const messages = await useBody(exchange.request, plan, { reservation, onBytes, onDecoded, use });
      // The key may have been revoked while the body was arriving. This check is usually served from memory.
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
      throw new PublicError('INTERNAL_SERVER_ERROR', {
        cause: new Error('the registry has not returned the schema ids yet'),
      });
    const { traceId, traceparent } = exchange;
    const receivedAt = Date.now();
    const batch = readBatch(body, {
      window: { fromMs: receivedAt - eventAgeMaxMs, toMs: receivedAt + eventAheadMaxMs, nowMs: receivedAt },
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
 * Minimum value size for a `traceparent` header (69 bytes), which would make smaller records exceed
 * `AMPLIFICATION_MAX`. Every value contains the trace id.
 */
const TRACED_VALUE_BYTES_MIN = 276;
const NO_HEADERS = {};

/** Returns the message records of a batch and its link facts. */
function toOutgoing(batch: BatchData, context: OutgoingContext): OutgoingRecord[] {
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

function estimateBytes({ declaredBytes, coding }: BodyPlan): number {
  if (declaredBytes === null) return CHUNKED_ESTIMATE_BYTES;
  return Math.min(coding === null ? declaredBytes : declaredBytes * COMPRESSION_ESTIMATE, BATCH_BYTES_MAX);
}

function countBatch(metrics: GatewayMetrics, { rejected, entries }: BatchData): void {
  metrics.onBatch(rejected > 0);
  if (rejected === 0) return;
  const counts = new Map<RejectionCode, number>();
  for (const { errors } of entries)
    for (const { error } of errors) counts.set(error.code, (counts.get(error.code) ?? 0) + 1);
  for (const [code, count] of counts) metrics.onRejected(code, count);
}

/** Formats a MessagesResponse as JSON. A batch may have thousands of errors, so the JSON of each error is cached. */
export function toResponseText({ accepted, rejected, entries }: Pick<BatchData, 'accepted' | 'rejected' | 'entries'>) {
  let rejections = '';
  for (const entry of entries) rejections += (rejections === '' ? '' : ',') + toEntryText(entry);
  return `{"success":${accepted > 0},"accepted":${accepted},"rejected":${rejected},"rejections":[${rejections}]}`;
}

function toEntryText({ messageId, errors }: RejectionEntry): string {
  let items = '';
  for (const { text } of errors) items += (items === '' ? '' : ',') + text;
  return `{"messageId":${JSON.stringify(messageId)},"errors":[${items}]}`;
}

/** The records of a batch, and the data for its response. */
export interface BatchData {
  readonly records: EncodedRecord[];
  /** Link facts of the accepted identify and alias messages. */
  readonly links: readonly IdentityLinkRecord[];
  readonly accepted: number;
  readonly rejected: number;
  /** Rejected messages as listed in the response. */
  readonly entries: readonly RejectionEntry[];
  /** Published after the response. */
  readonly rejections: BatchRejections;
}

interface BatchContext {
  readonly window: TimeWindow;
  readonly envelope: RecordEnvelope;
  readonly keyOf: KeyOfBytes;
}

/** @throws PublicError VALIDATION_ERROR if the body is not a batch */
type BatchReader = (body: Buffer, context: BatchContext) => BatchData;

/**
 * Scans the body once to find all fields of all messages. Only uncertain messages are examined individually.
 * @param libraries library names that rejection records may contain
 */
export function createBatchReader(libraries: ReadonlySet<string>): BatchReader {
  const scanner = createScanner();
  const encodeBatch = createBatchEncoder();
  return (body, { window, envelope, keyOf }) => {
    const count = scanner.scan(body, window);
    if (count < 0) throw toBodyError(count, body);
    const { state } = scanner;
    const { rejected, entries } = validateScanned(state);
    return {
      records: encodeBatch(state.batch, envelope, keyOf),
      links: createLinks(state.batch, envelope),
      accepted: count - rejected.length,
      rejected: rejected.length,
      entries,
      rejections:
        rejected.length === 0 ? NO_REJECTIONS : toBatchRejections(rejected, state.batch, { ...envelope, libraries }),
    };
  };
}

function createLinks(batch: ScannedBatch, envelope: RecordEnvelope): IdentityLinkRecord[] {
  const { environmentId, receivedAt, traceId } = envelope;
  const links: IdentityLinkRecord[] = [];
  for (let message = 0; message < batch.count; message++) {
    if (batch.accepted[message] === 0) continue;
    const type = readText(batch, message, FIELD.type);
    if (type !== 'identify' && type !== 'alias') continue;
    const text = (field: Field) => readText(batch, message, field);
    const id = message * UUID_BYTES;
    const link = toLinkFact({
      environmentId,
      receivedAt,
      traceId,
      type,
      // Copied, because the next request overwrites the scanner's memory.
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

const BATCH_ERRORS_MAX = 100;
/** The base limit for small bodies: a hundred empty messages take only 300 bytes. */
const BASE_ERRORS_MAX = 10;
const BYTES_PER_ERROR = 256;
/** Replaces library names that are not in the settings. */
const OTHER_LIBRARY = 'other';
/** Versions in any other format are omitted, because they could contain personal data. */
const VERSION = /^\d{1,6}(\.\d{1,6}){0,3}$/;
const QUOTE = 0x22;

/** The data for the record fields that do not depend on the error. */
interface RejectionContext extends Pick<RecordEnvelope, 'environmentId' | 'receivedAt' | 'traceId'> {
  readonly libraries: ReadonlySet<string>;
}

/** Omits message content: rejection records have no owner, so an erasure could not find the content. */
function toBatchRejections(
  rejected: readonly Rejection[],
  batch: ScannedBatch,
  { environmentId, receivedAt, traceId, libraries }: RejectionContext,
): BatchRejections {
  const records: RejectionRecord[] = [];
  const recordsMax = Math.min(BATCH_ERRORS_MAX, BASE_ERRORS_MAX + Math.floor(batch.body.length / BYTES_PER_ERROR));
  let omitted = 0;
  for (const { message, errors } of rejected) {
    const recorded = errors.slice(0, recordsMax - records.length);
    omitted += errors.length - recorded.length;
    if (recorded.length === 0) continue;
    const client = readClientInfo(batch, message, libraries);
    for (const { error } of recorded)
      records.push({
        environmentId,
        code: error.code,
        field: error.field,
        ...client,
        receivedAt,
        traceId,
        messageIndex: message,
      });
  }
  return { records, omitted };
}

type ClientInfo = Pick<RejectionRecord, 'surface' | 'library' | 'libraryVersion'>;

function readClientInfo(batch: ScannedBatch, message: number, libraries: ReadonlySet<string>): ClientInfo {
  const [surface, library, version] = [FIELD.surface, FIELD.library, FIELD.libraryVersion].map((field) =>
    readString(batch, message, field),
  ) as [string, string, string];
  return {
    surface: SURFACES.find((name) => name === surface) ?? '',
    library: library === '' || libraries.has(library) ? library : OTHER_LIBRARY,
    libraryVersion: VERSION.test(version) ? version : '',
  };
}

/** Returns '' if the value is not a string. */
function readString(batch: ScannedBatch, message: number, field: Field): string {
  const start = batch.starts[(message << ROW_SHIFT) + field]!;
  return start > 0 && batch.body[start - 1] === QUOTE ? readText(batch, message, field) : '';
}

const BODY_ERROR_MESSAGES = new Map<number, string>(
  Object.entries(BATCH_ERRORS).map(([name, text]) => [BODY_ERROR[name as keyof typeof BATCH_ERRORS], text]),
);

function toBodyError(code: number, body: Buffer): PublicError {
  const message = BODY_ERROR_MESSAGES.get(code);
  const error = message === undefined ? toJsonError(body) : { message, details: BATCH_ERROR_DETAILS };
  return new PublicError('VALIDATION_ERROR', error);
}
