import type { KeyRecord } from '@playline/access-keys';
import { BATCH_BYTES_MAX, frameRecord, identityLinkCodec, type RejectionCode, TOPICS } from '@playline/contracts';
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
import type { Utf8IdentityKeyer } from '@playline/people';
import type { OutgoingRecord } from '@playline/stream';
import type { Authorise } from '../../authorise.ts';
import { ALL_REJECTED, type CountUse, countEnd } from '../../count-use.ts';
import type { GatewayMetrics } from '../../metrics.ts';
import { bytesOf, type Publish } from '../../publish.ts';
import { type Allowance, type LimitMessages, unitsOf } from '../../rate-limits/message-limit.ts';
import { type PublishRejections, roomOnLog } from '../../rejections.ts';
import type { RejectionEntry } from '../../scan/judge.ts';
import type { SchemaIds } from '../../schema-ids.ts';
import { createBatchReader, type ReadBatch } from './read-batch.ts';

export interface MessagesRouteParts {
  authorise: Authorise;
  limit: LimitMessages;
  bytesInFlight: BytesInFlight;
  publish: Publish;
  publishRejections: PublishRejections;
  keyer: Utf8IdentityKeyer;
  schemaIds: () => SchemaIds | null;
  topicPrefix: string;
  /** How old and how far ahead of this clock an event may be, both inclusive. */
  eventAgeMaxMs: number;
  eventAheadMaxMs: number;
  /** Names of client libraries that rejections may name. */
  libraries: ReadonlySet<string>;
  metrics: GatewayMetrics;
  usage: CountUse;
}

/** Typical batches in JSON compress six- to tenfold. The guess decides on admission only; arrived bytes count then. */
const COMPRESSION_GUESS = 8;
/** The guess for a body without a length: a few dozen messages. */
const CHUNKED_GUESS_BYTES = 64 * 1024;

/**
 * POST /v1/audience/messages: contract, "Ingest". Order of the steps: key, limit of the key, header fields that
 * describe the body, room for its bytes, body, messages, key again, brokers, answer.
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
        // The guarantee of the 200: nothing is answered before the brokers have acknowledged every record of the batch.
        if (outgoing.length > 0) await parts.publish(outgoing, reservation);
        parts.metrics.onAccepted(batch.accepted);
        exchange.answer(batch.accepted > 0 ? 200 : 400, toAnswerText(batch));
        countServed(parts.usage, key, { batch, traceId: exchange.traceId });
        // After the answer, so that no caller waits. A batch answered with 500 comes again and is published then.
        if (batch.rejected > 0)
          parts.publishRejections(batch.rejections, roomOnLog(exchange.request, bodyBytes, outgoing));
      } catch (error) {
        countEnd(parts.usage, key, { exchange, error });
        throw error;
      }
    },
  };
}

function countServed(usage: CountUse, key: KeyRecord, { batch, traceId }: { batch: ReadBatch; traceId: string }): void {
  const { accepted, rejected } = batch;
  if (accepted > 0) usage.used(key, accepted, rejected);
  else usage.refused(key, { reason: ALL_REJECTED, traceId, rejected });
}

/** What is needed to read a body. */
interface Reception {
  plan: BodyPlan;
  reservation: Reservation;
  allowance: Allowance;
}

/**
 * The least that a body costs. It is charged before the body is read, so that requests that arrive together are counted
 * one by one.
 */
const LET_IN_UNITS = 1;

/**
 * Builds the step from body to records. When it fails, its bytes are released, since nothing is published yet. What has
 * arrived is charged however the request ends: a body that is refused, sent slowly or broken off costs its sender as
 * much as events.
 */
function createReceive(parts: MessagesRouteParts) {
  const readMessages = createMessagesReader(parts);
  return async (exchange: Exchange, environmentId: string, { plan, reservation, allowance }: Reception) => {
    allowance.charge(LET_IN_UNITS);
    let received = 0;
    let bytes = 0;
    const onBytes = (soFar: number) => {
      received = soFar;
      bytes = soFar;
    };
    // Compressed bytes that decompress to nothing are work too, so they are charged.
    const onDecoded = (decoded: number) => {
      bytes = Math.max(received, decoded);
    };
    const use = (body: Buffer) => {
      reservation.grow(body.length);
      return readMessages(exchange, environmentId, body);
    };
    try {
      const messages = await useBody(exchange.request, plan, { reservation, onBytes, onDecoded, use });
      // A body may take 10 s to arrive, and its key may have ended meanwhile. Usually answered from memory.
      const stillAuthorised = parts.authorise(exchange);
      if (stillAuthorised instanceof Promise) await stillAuthorised;
      chargeRest(allowance, unitsOf(messages.batch.accepted + messages.batch.rejected, bytes));
      if (messages.outgoing.length === 0) reservation.release();
      else reservation.settle(bytesOf(messages.outgoing));
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
  if (units !== LET_IN_UNITS) allowance.charge(units - LET_IN_UNITS);
}

/** Builds the reader of whole bodies. It returns the records of accepted messages, and the rejections. */
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
 * Records with a value of at least this size have `traceparent` as a header: its 69 bytes are then at most a quarter of
 * the value. On shorter values it would make a batch of the shortest identifies more than three times as large on the
 * log as received (`AMPLIFICATION_MAX`). Every value has the trace id anyway.
 */
const TRACED_VALUE_BYTES_MIN = 276;
const NO_HEADERS = {};

/**
 * Everything that one batch writes to the log: its messages, and a link fact for each identify and alias that links.
 * A link fact needs no `traceparent` header, because it has the trace id in its value.
 */
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

/**
 * JSON text of a MessagesResponse: contract, "MessagesResponse" and "Success". A batch may have thousands of errors, so
 * the text of each is made only once in the life of the process.
 */
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
