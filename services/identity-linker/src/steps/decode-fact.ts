import {
  createRecordReader,
  IDENTITY_KINDS,
  type IdentityKind,
  type IdentityLinkRecord,
  identityLinkCodec,
  type ReadValue,
  type SchemaSource,
} from '@playline/contracts';
import { RetryableFault, type StreamRecord } from '@playline/stream';

export type Decoded = { kind: 'fact'; fact: IdentityLinkRecord } | { kind: 'deadLetter'; reason: string };
/** A promise only where the registry must be asked first: this is the hot path. */
export type DecodeFact = (record: StreamRecord) => Decoded | Promise<Decoded>;

const ENVIRONMENT_ID = /^[a-z0-9_-]{1,64}$/;
const KINDS: ReadonlySet<string> = new Set(IDENTITY_KINDS);
/** More than the largest person has; the graph takes them as a number of two bytes. */
const UNLINK_MAX = 10_000;
/** The graph keeps times in six bytes: up to the year 10,889. */
const TIME_END_MS = 2 ** 48;

/**
 * Creates the step that reads a record of the link topic, whatever release wrote it. A record that is no link fact is a
 * dead letter; a registry that cannot be asked is a RetryableFault, because then nobody knows.
 */
export function createDecodeFact(schemaOf: SchemaSource): DecodeFact {
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

/** Avro knows text and numbers; which are environments, kinds, ids and times is checked here, before any names a key. */
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
