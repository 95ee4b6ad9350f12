import { TOPICS, WAITING_HEADERS } from '@playline/contracts';
import type { ErasureRows, LinkPlace } from '@playline/erasure';
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
  let count = 0;
  let facts: OutgoingRecord[] = [];
  const send = async () => {
    await sendAll(parts.producer, facts);
    count += facts.length;
    facts = [];
  };
  for (const { partition, offsets } of toRanges(places.filter(({ generation }) => generation === parts.generation))) {
    const wanted = new Set(offsets);
    const range = { topic, partition, start: offsets[0]!, end: offsets.at(-1)! + 1 };
    for await (const record of parts.reader.read(range)) {
      if (record.value === null || !wanted.has(record.offset)) continue;
      if (facts.push(toOutgoing(record)) === FACTS_A_CALL) await send();
    }
  }
  await send();
  if (count < places.length) parts.onLost(places.length - count);
  return count;
}

/** Facts that are sent together. A person may have a hundred thousand. */
const FACTS_A_CALL = 1_000;
/** Facts that are closer are read together: a request of the log takes as long as some hundred records. */
const GAP_MAX = 500;

/** Places in ranges of the log, in its order. */
function toRanges(places: readonly LinkPlace[]): { partition: number; offsets: number[] }[] {
  const ranges: { partition: number; offsets: number[] }[] = [];
  for (const { partition, offset } of places.toSorted((a, b) => a.partition - b.partition || a.offset - b.offset)) {
    const last = ranges.at(-1);
    if (last?.partition === partition && offset - last.offsets.at(-1)! <= GAP_MAX) last.offsets.push(offset);
    else ranges.push({ partition, offsets: [offset] });
  }
  return ranges;
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
