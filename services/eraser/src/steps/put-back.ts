import { TOPICS, WAITING_HEADERS } from '@playline/contracts';
import type { ErasureRows } from '@playline/erasure';
import { type LogReader, type OutgoingRecord, type Producer, type StreamRecord, sendAll } from '@playline/stream';

export interface PutBackParts {
  readonly rows: Pick<ErasureRows, 'findLaterLinks'>;
  readonly reader: LogReader;
  readonly producer: Pick<Producer, 'send'>;
  readonly topicPrefix: string;
  /** Generation of the link topic. */
  readonly generation: number;
  /** Called with the number of facts that could not be read again. */
  readonly onLost: (facts: number) => void;
}

/**
 * Publishes again the facts of links that are later than the erasure but left the graph with the person, because they
 * were applied before its hold took effect. They wait at the end of the link topic for the release and are then decided
 * again. The decision for a link that had not left the graph is `unchanged`. Their rows in ClickHouse are later than
 * the cut-off, and stay.
 * @returns the number of facts
 * @throws StoreFault, or an Error of the brokers; then it may be called again
 */
export async function putBackLaterLinks(parts: PutBackParts, batchId: Buffer): Promise<number> {
  const places = await parts.rows.findLaterLinks(batchId);
  const topic = parts.topicPrefix + TOPICS.identityLinks.name;
  const facts: OutgoingRecord[] = [];
  for (const { generation, partition, offset } of places) {
    const fact = generation === parts.generation ? await readRecord(parts.reader, { topic, partition, offset }) : null;
    if (fact !== null) facts.push(toOutgoing(fact));
  }
  if (facts.length < places.length) parts.onLost(places.length - facts.length);
  await sendAll(parts.producer, facts);
  return facts.length;
}

async function readRecord(
  reader: LogReader,
  { topic, partition, offset }: { topic: string; partition: number; offset: number },
): Promise<StreamRecord | null> {
  for await (const record of reader.read({ topic, partition, start: offset, end: offset + 1 }))
    return record.value === null ? null : record;
  return null;
}

function toOutgoing({ topic, key, value, headers, offset }: StreamRecord): OutgoingRecord {
  const kept = Object.entries(headers).filter((header): header is [string, string | Buffer] => header[1] !== undefined);
  return {
    topic,
    key,
    value: value!,
    headers: { [WAITING_HEADERS.firstOffset]: String(offset), ...Object.fromEntries(kept) },
  };
}
