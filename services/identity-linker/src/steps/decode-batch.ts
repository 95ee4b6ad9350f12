import {
  createRecordReader,
  IDENTITY_KINDS,
  type IdentityKind,
  type IdentityLinkRecord,
  identityLinkCodec,
  isEnvironmentId,
  type RecordResult,
  type SchemaSource,
  STORED_TIME_END_MS,
} from '@playline/contracts';
import type { Logger } from '@playline/runtime';
import {
  type BatchPosition,
  type OutgoingRecord,
  RetryableFault,
  type StreamRecord,
  toDeadLetter,
} from '@playline/stream';

export interface DecodedFact {
  readonly offset: number;
  readonly fact: IdentityLinkRecord;
  readonly record: StreamRecord;
}

export interface DecodedBatch {
  readonly found: readonly DecodedFact[];
  readonly deadLetters: readonly OutgoingRecord[];
  readonly firstDeadLetter: { readonly offset: number; readonly reason: string } | null;
}

/** @param step the step name that dead letters contain */
export function createDecodeBatch(schemaOf: SchemaSource, step: string) {
  const decodeFact = createDecodeFact(schemaOf);
  return async (records: readonly StreamRecord[]): Promise<DecodedBatch> => {
    const found: DecodedFact[] = [];
    const deadLetters: OutgoingRecord[] = [];
    let firstDeadLetter: DecodedBatch['firstDeadLetter'] = null;
    for (const record of records) {
      const result = decodeFact(record);
      const decoded = result instanceof Promise ? await result : result;
      if (decoded.kind === 'fact') found.push({ fact: decoded.fact, offset: record.offset, record });
      else {
        deadLetters.push(toDeadLetter({ record, reason: decoded.reason }, step));
        firstDeadLetter ??= { offset: record.offset, reason: decoded.reason };
      }
    }
    return { found, deadLetters, firstDeadLetter };
  };
}

export function reportDeadLetters(logger: Logger, { topic, partition }: BatchPosition, batch: DecodedBatch): void {
  const { firstDeadLetter, deadLetters } = batch;
  if (firstDeadLetter === null) return;
  logger.warn({ topic, partition, ...firstDeadLetter, count: deadLetters.length }, 'dead letters written');
}

type Decoded = { kind: 'fact'; fact: IdentityLinkRecord } | { kind: 'deadLetter'; reason: string };
/** Synchronous unless a schema must be fetched, because this is the hot path. */
type DecodeFact = (record: StreamRecord) => Decoded | Promise<Decoded>;

const KINDS: ReadonlySet<string> = new Set(IDENTITY_KINDS);
/** Far more identities than a person has. The graph stores the count in two bytes. */
const UNLINK_MAX = 10_000;

/** Decodes a record written by any release. @throws RetryableFault while the schema registry is unavailable */
function createDecodeFact(schemaOf: SchemaSource): DecodeFact {
  const read = createRecordReader({ schemaOf, createReader: identityLinkCodec.decoderOf });
  return ({ value }) => {
    const decoded = read(value);
    if (!(decoded instanceof Promise)) return toDecoded(decoded);
    return decoded.then(toDecoded, (cause: unknown) => {
      throw new RetryableFault('the schema for link facts could not be fetched', { cause });
    });
  };
}

function toDecoded(read: RecordResult<IdentityLinkRecord>): Decoded {
  return read.kind === 'record' ? checkFact(read.record) : { kind: 'deadLetter', reason: read.reason };
}

/** Checks what Avro does not check: environments, identity kinds, ids and times. */
function checkFact(fact: IdentityLinkRecord): Decoded {
  if (!isEnvironmentId(fact.environmentId)) return { kind: 'deadLetter', reason: 'not an environment id' };
  if (!isKind(fact.fromKind) || !isKind(fact.toKind)) return { kind: 'deadLetter', reason: 'unknown identity kind' };
  if (!fact.unlink.every(({ kind }) => isKind(kind))) return { kind: 'deadLetter', reason: 'unknown identity kind' };
  if (fact.unlink.length > UNLINK_MAX) return { kind: 'deadLetter', reason: 'too many identities to unlink' };
  const isFromIdMissing = fact.fromId.trim() === '' && (fact.link === 'alias' || fact.fromId !== '');
  if (fact.toId.trim() === '' || isFromIdMissing) return { kind: 'deadLetter', reason: 'blank id' };
  if (!isTime(fact.receivedAt) || !isTime(fact.eventTime)) return { kind: 'deadLetter', reason: 'time out of range' };
  return { kind: 'fact', fact };
}

function isTime(timeMs: number): boolean {
  return Number.isSafeInteger(timeMs) && timeMs < STORED_TIME_END_MS;
}

function isKind(kind: string): kind is IdentityKind {
  return KINDS.has(kind);
}
