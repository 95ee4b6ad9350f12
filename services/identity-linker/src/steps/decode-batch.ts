import {
  createRecordReader,
  IDENTITY_KINDS,
  type IdentityKind,
  type IdentityLinkRecord,
  identityLinkCodec,
  isEnvironmentId,
  KEPT_TIME_END_MS,
  type ReadValue,
  type SchemaSource,
} from '@playline/contracts';
import type { Logger } from '@playline/runtime';
import {
  type BatchPosition,
  type OutgoingRecord,
  RetryableFault,
  type StreamRecord,
  toDeadLetter,
} from '@playline/stream';

/** A link fact and its record. */
export interface Found {
  readonly offset: number;
  readonly fact: IdentityLinkRecord;
  readonly record: StreamRecord;
}

/** A decoded batch: its facts in order, and a dead letter for each record that is not a fact. */
export interface DecodedBatch {
  readonly found: readonly Found[];
  readonly deadLetters: readonly OutgoingRecord[];
  readonly firstDeadLetter: { readonly offset: number; readonly reason: string } | null;
}

/**
 * Creates the step that reads the facts of a batch.
 * @param step named in its dead letters
 */
export function createDecodeBatch(schemaOf: SchemaSource, step: string) {
  const decodeFact = createDecodeFact(schemaOf);
  return async (records: readonly StreamRecord[]): Promise<DecodedBatch> => {
    const found: Found[] = [];
    const deadLetters: OutgoingRecord[] = [];
    let firstLetter: DecodedBatch['firstDeadLetter'] = null;
    for (const record of records) {
      const answer = decodeFact(record);
      const decoded = answer instanceof Promise ? await answer : answer;
      if (decoded.kind === 'fact') found.push({ fact: decoded.fact, offset: record.offset, record });
      else {
        deadLetters.push(toDeadLetter({ record, reason: decoded.reason }, step));
        firstLetter ??= { offset: record.offset, reason: decoded.reason };
      }
    }
    return { found, deadLetters, firstDeadLetter: firstLetter };
  };
}

/** Logs that a batch has records which are not facts, if it has any. */
export function reportDeadLetters(logger: Logger, { topic, partition }: BatchPosition, batch: DecodedBatch): void {
  const { firstDeadLetter: firstLetter, deadLetters } = batch;
  if (firstLetter === null) return;
  logger.warn({ topic, partition, ...firstLetter, count: deadLetters.length }, 'records went to the dead letters');
}

type Decoded = { kind: 'fact'; fact: IdentityLinkRecord } | { kind: 'deadLetter'; reason: string };
/** Returns a promise only if the registry must be asked first, because this is the hot path. */
type DecodeFact = (record: StreamRecord) => Decoded | Promise<Decoded>;

const KINDS: ReadonlySet<string> = new Set(IDENTITY_KINDS);
/** More identities than the largest person has. The graph stores the number in two bytes. */
const UNLINK_MAX = 10_000;

/**
 * Creates the step that reads a record of the link topic, written by any release. A record that is not a link fact is a
 * dead letter. While the registry is not reachable it throws a RetryableFault, because the record may be a fact.
 */
function createDecodeFact(schemaOf: SchemaSource): DecodeFact {
  const read = createRecordReader({ schemaOf, createReader: identityLinkCodec.decoderOf });
  return ({ value }) => {
    const answer = read(value);
    if (!(answer instanceof Promise)) return toDecoded(answer);
    return answer.then(toDecoded, (cause: unknown) => {
      throw new RetryableFault('the schema of a link fact could not be asked for', { cause });
    });
  };
}

function toDecoded(read: ReadValue<IdentityLinkRecord>): Decoded {
  return read.kind === 'record' ? checkFact(read.record) : { kind: 'deadLetter', reason: read.reason };
}

/** Checks environments, kinds, ids and times before keys are made of them. Avro only checks texts and numbers. */
function checkFact(fact: IdentityLinkRecord): Decoded {
  if (!isEnvironmentId(fact.environmentId)) return { kind: 'deadLetter', reason: 'not an environment id' };
  if (!isKind(fact.fromKind) || !isKind(fact.toKind)) return { kind: 'deadLetter', reason: 'unknown identity kind' };
  if (!fact.unlink.every(({ kind }) => isKind(kind))) return { kind: 'deadLetter', reason: 'unknown identity kind' };
  if (fact.unlink.length > UNLINK_MAX) return { kind: 'deadLetter', reason: 'too many identities to split off' };
  const isFromMissing = fact.fromId.trim() === '' && (fact.link === 'alias' || fact.fromId !== '');
  if (fact.toId.trim() === '' || isFromMissing) return { kind: 'deadLetter', reason: 'blank id' };
  if (!isTime(fact.receivedAt) || !isTime(fact.eventTime)) return { kind: 'deadLetter', reason: 'time out of range' };
  return { kind: 'fact', fact };
}

function isTime(timeMs: number): boolean {
  return Number.isSafeInteger(timeMs) && timeMs < KEPT_TIME_END_MS;
}

function isKind(kind: string): kind is IdentityKind {
  return KINDS.has(kind);
}
