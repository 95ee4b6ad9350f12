import {
  FRAME_BYTES,
  IDENTITY_KINDS,
  type IdentityKind,
  type IdentityLinkRecord,
  identityLinkCodec,
  schemaIdOf,
} from '@playline/contracts';
import { RetryableFault, type StreamRecord } from '@playline/stream';

export type Decoded = { kind: 'fact'; fact: IdentityLinkRecord } | { kind: 'deadLetter'; reason: string };
/** A promise only where the registry must be asked first: this is the hot path. */
export type DecodeFact = (record: StreamRecord) => Decoded | Promise<Decoded>;

/** Text of a registered schema by its id; null when the registry knows no such id. */
export type SchemaSource = (id: number) => Promise<string | null>;

const ENVIRONMENT_ID = /^[a-z0-9_-]{1,64}$/;
const KINDS: ReadonlySet<string> = new Set(IDENTITY_KINDS);
/** The graph keeps times in six bytes: up to the year 10,889. */
const TIME_END_MS = 2 ** 48;

/**
 * Creates the step that reads a record of the link topic. A record that is no link fact is a dead letter; a registry
 * that cannot be asked is a RetryableFault, because then nobody knows.
 */
export function createDecodeFact(schemaOf: SchemaSource): DecodeFact {
  const readable = new Map<number, boolean>();

  const ask = async (id: number): Promise<boolean> => {
    const text = await schemaOf(id).catch((cause: unknown) => {
      throw new RetryableFault(`schema ${id} could not be asked for`, { cause });
    });
    const answer = text !== null && isSameSchema(text, identityLinkCodec.schema);
    readable.set(id, answer);
    return answer;
  };

  return ({ value }) => {
    const id = value === null ? null : schemaIdOf(value);
    if (value === null || id === null) return { kind: 'deadLetter', reason: 'no schema id' };
    const known = readable.get(id);
    if (known !== undefined) return decodeValue(value, { id, isReadable: known });
    return ask(id).then((isReadable) => decodeValue(value, { id, isReadable }));
  };
}

function decodeValue(value: Buffer, { id, isReadable }: { id: number; isReadable: boolean }): Decoded {
  if (!isReadable) return { kind: 'deadLetter', reason: `schema ${id} is not the one of a link fact` };
  try {
    return checkFact(identityLinkCodec.decode(value.subarray(FRAME_BYTES)));
  } catch {
    // The decoder's words may hold bytes of the record, and so somebody's id.
    return { kind: 'deadLetter', reason: `not a record of schema ${id}` };
  }
}

function isSameSchema(a: string, b: string): boolean {
  return JSON.stringify(JSON.parse(a)) === JSON.stringify(JSON.parse(b));
}

/** Avro knows text and numbers; which are environments, kinds, ids and times is checked here, before any names a key. */
function checkFact(fact: IdentityLinkRecord): Decoded {
  if (!ENVIRONMENT_ID.test(fact.environmentId)) return { kind: 'deadLetter', reason: 'not an environment id' };
  if (!isKind(fact.fromKind) || !isKind(fact.toKind)) return { kind: 'deadLetter', reason: 'unknown identity kind' };
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
