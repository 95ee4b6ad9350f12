import { IDENTITY_KEY_BYTES, WAITING_HEADERS, WAITING_OFFSET_BYTES } from '@playline/contracts';
import type { OutgoingRecord, StreamRecord } from '@playline/stream';

/** A copy of a fact that does not retain the fetched response in memory. */
export interface WaitingFact {
  readonly offset: number;
  /** The fact's first offset in the link topic, by which a person's facts are ordered. */
  readonly firstOffset: number;
  readonly rounds: number;
  /** Estimated memory usage. */
  readonly bytes: number;
  /** The fact with its original content. */
  readonly outgoing: OutgoingRecord;
}

const { firstOffset: FIRST_OFFSET, identityKeys: IDENTITY_KEYS } = WAITING_HEADERS;
const ROUNDS = 'rounds';
const FACT_OVERHEAD_BYTES = 300;

/**
 * Copies a fact, because a fetched record retains the broker's whole response in memory.
 * @param keys keys of all identities in the fact, 16 bytes each
 */
export function toWaiting({ topic, offset, key, value, headers }: StreamRecord, keys: readonly Buffer[]): WaitingFact {
  const { [ROUNDS]: rounds, [IDENTITY_KEYS]: _, ...others } = headers;
  const retained = Object.entries(others).filter(
    (header): header is [string, string | Buffer] => header[1] !== undefined,
  );
  const copies = retained.map(([name, content]): [string, Buffer] => [name, Buffer.from(content)]);
  const firstOffsetHeader = headers[FIRST_OFFSET];
  const firstOffset = firstOffsetHeader === undefined ? offset : Number(firstOffsetHeader);
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
    keys.length * IDENTITY_KEY_BYTES,
  );
  const bytes = outgoing.value.length + headerBytes + FACT_OVERHEAD_BYTES;
  return { offset, firstOffset, rounds: Number(rounds ?? 0), outgoing, bytes };
}

/** Converts facts to records for a topic, ordered by first offset. */
export function toRecords(facts: readonly WaitingFact[], topic: string, rounds = 0): OutgoingRecord[] {
  const roundsHeader: OutgoingRecord['headers'] = rounds === 0 ? {} : { [ROUNDS]: String(rounds) };
  return [...facts]
    .sort((a, b) => a.firstOffset - b.firstOffset)
    .map(({ outgoing }) => ({ ...outgoing, topic, headers: { ...outgoing.headers, ...roundsHeader } }));
}

export function sumBytes(facts: readonly WaitingFact[]): number {
  return facts.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Creates a record for the parked topic that lists the facts moved out of the topic. */
export function toDepartureRecord(facts: readonly WaitingFact[], topic: string): OutgoingRecord {
  const offsets = Buffer.alloc(facts.length * WAITING_OFFSET_BYTES);
  for (const [at, { offset }] of facts.entries()) offsets.writeBigUInt64BE(BigInt(offset), at * WAITING_OFFSET_BYTES);
  return { topic, key: facts[0]!.outgoing.key, value: Buffer.alloc(0), headers: { [WAITING_HEADERS.left]: offsets } };
}

export const isDepartureRecord = ({ headers }: StreamRecord): boolean => headers[WAITING_HEADERS.left] !== undefined;
