import { WAITING_HEADERS } from '@playline/contracts';
import type { OutgoingRecord, StreamRecord } from '@playline/stream';

/** A fact that waits for an erasure: a copy, independent of the fetch that brought it. */
export interface WaitingFact {
  /** Where it stands now. */
  readonly offset: number;
  /** Where it stood on the topic of links when it was parked for the first time: the facts of a person keep this order. */
  readonly firstOffset: number;
  /** How often it has gone round since. */
  readonly rounds: number;
  /** What it takes in memory. */
  readonly bytes: number;
  /** The fact as it is, for a later place in a log. */
  readonly outgoing: OutgoingRecord;
}

const { firstOffset: FIRST_OFFSET, identityKeys: IDENTITY_KEYS } = WAITING_HEADERS;
/** Header of a fact on its rounds: how often it has gone back to the end of its topic. A header, so that the count survives this process. */
const ROUNDS = 'rounds';
const KEY_BYTES = 16;
/** Objects around a fact's bytes. */
const FACT_OVERHEAD_BYTES = 300;

/**
 * Copies a fact for the end of its topic, where it gets a later offset and so its turn again. A header keeps its first
 * offset. A copy, because a record of a fetch keeps the whole answer of the broker in memory.
 * @param keys of all identities that it names, 16 bytes each
 */
export function toWaiting({ topic, offset, key, value, headers }: StreamRecord, keys: readonly Buffer[]): WaitingFact {
  const { [ROUNDS]: rounds, [IDENTITY_KEYS]: _, ...others } = headers;
  const kept = Object.entries(others).filter((header): header is [string, string | Buffer] => header[1] !== undefined);
  const copies = kept.map(([name, content]): [string, Buffer] => [name, Buffer.from(content)]);
  const known = headers[FIRST_OFFSET];
  const firstOffset = known === undefined ? offset : Number(known);
  const outgoing = {
    topic,
    key: key === null ? null : Buffer.from(key),
    value: Buffer.from(value!),
    headers: {
      ...Object.fromEntries(copies),
      [FIRST_OFFSET]: String(firstOffset),
      [IDENTITY_KEYS]: Buffer.concat(keys),
    },
  };
  const headerBytes = copies.reduce(
    (sum, [name, content]) => sum + name.length + content.length,
    keys.length * KEY_BYTES,
  );
  const bytes = outgoing.value.length + headerBytes + FACT_OVERHEAD_BYTES;
  return { offset, firstOffset, rounds: Number(rounds ?? 0), outgoing, bytes };
}

/** The facts as records of a topic, in the order in which they first came; they have gone round so often, or not yet. */
export function toRecords(facts: readonly WaitingFact[], topic: string, rounds = 0): OutgoingRecord[] {
  const counted: OutgoingRecord['headers'] = rounds === 0 ? {} : { [ROUNDS]: String(rounds) };
  return [...facts]
    .sort((a, b) => a.firstOffset - b.firstOffset)
    .map(({ outgoing }) => ({ ...outgoing, topic, headers: { ...outgoing.headers, ...counted } }));
}

export function sumBytes(facts: readonly WaitingFact[]): number {
  return facts.reduce((sum, { bytes }) => sum + bytes, 0);
}

const OFFSET_BYTES = 8;

/** The record that says in the parked place which of its facts have left it. */
export function toLeftMark(facts: readonly WaitingFact[], topic: string): OutgoingRecord {
  const offsets = Buffer.alloc(facts.length * OFFSET_BYTES);
  for (const [at, { offset }] of facts.entries()) offsets.writeBigUInt64BE(BigInt(offset), at * OFFSET_BYTES);
  return { topic, key: facts[0]!.outgoing.key, value: Buffer.alloc(0), headers: { [WAITING_HEADERS.left]: offsets } };
}

/** Whether a record of the parked place says which facts have left it, and is no fact. */
export const isLeftMark = ({ headers }: StreamRecord): boolean => headers[WAITING_HEADERS.left] !== undefined;
