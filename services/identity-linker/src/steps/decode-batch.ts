import {
  createRecordReader,
  IDENTITY_KINDS,
  type IdentityKind,
  type IdentityLinkRecord,
  identityLinkCodec,
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

/** A link fact, and the record that holds it. */
export interface Found {
  readonly offset: number;
  readonly fact: IdentityLinkRecord;
  readonly record: StreamRecord;
}

/** A batch as it was read: its facts in order, and a dead letter for each record that is no fact. */
export interface DecodedBatch {
  readonly found: readonly Found[];
  readonly deadLetters: readonly OutgoingRecord[];
  readonly firstLetter: { readonly offset: number; readonly reason: string } | null;
}

/**
 * Creates the step that reads the facts of a batch.
 * @param step named in its letters
 */
export function createDecodeBatch(schemaOf: SchemaSource, step: string) {
  const decodeFact = createDecodeFact(schemaOf);
  return async (records: readonly StreamRecord[]): Promise<DecodedBatch> => {
    const found: Found[] = [];
    const deadLetters: OutgoingRecord[] = [];
    let firstLetter: DecodedBatch['firstLetter'] = null;
    for (const record of records) {
      const answer = decodeFact(record);
      const decoded = answer instanceof Promise ? await answer : answer;
      if (decoded.kind === 'fact') found.push({ fact: decoded.fact, offset: record.offset, record });
      else {
        deadLetters.push(toDeadLetter({ record, reason: decoded.reason }, step));
        firstLetter ??= { offset: record.offset, reason: decoded.reason };
      }
    }
    return { found, deadLetters, firstLetter };
  };
}

/** Says that records of a batch are no facts, when any are not. */
export function tellDeadLetters(logger: Logger, { topic, partition }: BatchPosition, batch: DecodedBatch): void {
  const { firstLetter, deadLetters } = batch;
  if (firstLetter === null) return;
  logger.warn({ topic, partition, ...firstLetter, count: deadLetters.length }, 'records went to the dead letters');
}

type Decoded = { kind: 'fact'; fact: IdentityLinkRecord } | { kind: 'deadLetter'; reason: string };
/** A promise only where the registry must be asked first: this is the hot path. */
type DecodeFact = (record: StreamRecord) => Decoded | Promise<Decoded>;

const ENVIRONMENT_ID = /^[a-z0-9_-]{1,64}$/;
const KINDS: ReadonlySet<string> = new Set(IDENTITY_KINDS);
/** More than the largest person has; the graph takes them as a number of two bytes. */
const UNLINK_MAX = 10_000;
/** The graph keeps times in six bytes: up to the year 10,889. */
const TIME_END_MS = 2 ** 48;

/**
 * Creates the step that reads a record of the link topic, whatever release wrote it. A record that is no link fact is a
 * dead letter. A registry that cannot be asked is a RetryableFault: the record may be a fact.
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

/** Avro knows only text and numbers. That they are environments, kinds, ids and times is checked here, before a key is made of any. */
function checkFact(fact: IdentityLinkRecord): Decoded {
  if (!ENVIRONMENT_ID.test(fact.environmentId)) return { kind: 'deadLetter', reason: 'not an environment id' };
  if (!isKind(fact.fromKind) || !isKind(fact.toKind)) return { kind: 'deadLetter', reason: 'unknown identity kind' };
  if (!fact.unlink.every(({ kind }) => isKind(kind))) return { kind: 'deadLetter', reason: 'unknown identity kind' };
  if (fact.unlink.length > UNLINK_MAX) return { kind: 'deadLetter', reason: 'too many identities to split off' };
  const isFromMissing = fact.fromId.trim() === '' && (fact.link === 'alias' || fact.fromId !== '');
  if (fact.toId.trim() === '' || isFromMissing) return { kind: 'deadLetter', reason: 'blank id' };
  if (!isTime(fact.receivedAt) || !isTime(fact.eventTime)) return { kind: 'deadLetter', reason: 'time out of range' };
  return { kind: 'fact', fact };
}

function isTime(timeMs: number): boolean {
  return Number.isSafeInteger(timeMs) && timeMs < TIME_END_MS;
}

function isKind(kind: string): kind is IdentityKind {
  return KINDS.has(kind);
}
