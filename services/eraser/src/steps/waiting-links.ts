import {
  createRecordReader,
  IDENTITY_KEY_BYTES,
  identityLinkCodec,
  type SchemaSource,
  TOPICS,
  type Topic,
  WAITING_HEADERS,
  WAITING_OFFSET_BYTES,
} from '@playline/contracts';
import { parkedGroupOf } from '@playline/runtime';
import type { LogBounds, LogReader, StreamRecord } from '@playline/stream';

export interface WaitingLink {
  readonly environmentId: string;
  /** Receipt time at the gateway, in epoch milliseconds. */
  readonly receivedAtMs: number;
  /** Keys of all identities in the fact, 16 bytes each. */
  readonly keys: readonly Buffer[];
  readonly isUnlink: boolean;
}

export interface WaitingLinksOptions {
  readonly reader: LogReader;
  readonly schemaOf: SchemaSource;
  readonly linkerGroup: string;
  readonly topicPrefix: string;
}

/** Topics in which waiting links follow the linker's committed offsets. */
const SOURCES = [
  { topic: TOPICS.identityLinks, groupOf: (linkerGroup: string) => linkerGroup },
  { topic: TOPICS.parkedLinks, groupOf: parkedGroupOf },
] as const satisfies readonly { topic: Topic; groupOf: (linkerGroup: string) => string }[];

/**
 * Creates a reader of waiting links. The result contains all waiting links and may contain links that were just
 * decided.
 * @throws a broker or registry error, or if an open transaction hides records
 */
export function createReadWaiting(options: WaitingLinksOptions): () => Promise<WaitingLink[]> {
  const { reader, schemaOf, linkerGroup, topicPrefix } = options;
  const decode = createRecordReader({ schemaOf, createReader: identityLinkCodec.decoderOf });
  const toLink = async (
    { value, headers }: StreamRecord,
    intern: (key: Buffer) => Buffer,
  ): Promise<WaitingLink | null> => {
    const keys = headers[WAITING_HEADERS.identityKeys];
    const decoded = keys === undefined ? null : await decode(value);
    if (decoded?.kind !== 'record') return null;
    const { environmentId, receivedAt: receivedAtMs, unlink } = decoded.record;
    return {
      environmentId,
      receivedAtMs,
      keys: split(keys!, IDENTITY_KEY_BYTES).map(intern),
      isUnlink: unlink.length > 0,
    };
  };
  const readPartition = async (range: Parameters<LogReader['read']>[0]): Promise<WaitingLink[]> => {
    const waiting = new Map<number, WaitingLink>();
    const intern = createKeyPool();
    for await (const record of reader.read(range)) {
      const leftOffsets = record.headers[WAITING_HEADERS.left];
      for (const offset of leftOffsets === undefined ? [] : split(leftOffsets, WAITING_OFFSET_BYTES))
        waiting.delete(Number(offset.readBigUInt64BE()));
      const link = await toLink(record, intern);
      if (link !== null) waiting.set(record.offset, link);
    }
    return [...waiting.values()];
  };
  return async () => {
    // Reads all committed offsets first, so that a fact that moves between the topics is not missed.
    const topics = [];
    for (const { topic, groupOf } of SOURCES) {
      const name = topicPrefix + topic.name;
      topics.push({ topic: name, committed: await reader.committed(groupOf(linkerGroup), name) });
    }
    const waiting: WaitingLink[] = [];
    for (const { topic, committed } of topics)
      for (const { partition, start, end } of await readDecidedBounds(reader, topic)) {
        const from = Math.max(committed.get(partition) ?? start, start);
        if (from >= end) continue;
        for (const link of await readPartition({ topic, partition, start: from, end })) waiting.push(link);
      }
    return waiting;
  };
}

/** @throws if an open transaction hides records */
async function readDecidedBounds(reader: LogReader, topic: string): Promise<LogBounds[]> {
  const all = await reader.bounds(topic, { readUncommitted: true });
  const decided = await reader.bounds(topic);
  const open = all.find(({ end }, partition) => (decided[partition]?.end ?? 0) < end);
  if (open !== undefined) throw new Error(`${topic}/${open.partition} has an open transaction`);
  return decided;
}

/** Creates a function that interns keys: equal keys return the same Buffer. */
function createKeyPool(): (key: Buffer) => Buffer {
  const known = new Map<string, Buffer>();
  return (key) => {
    const name = key.toString('latin1');
    const shared = known.get(name) ?? key;
    if (shared === key) known.set(name, key);
    return shared;
  };
}

function split(bytes: string | Buffer, size: number): Buffer[] {
  const all = Buffer.from(bytes);
  return Array.from({ length: Math.floor(all.length / size) }, (_, at) => all.subarray(at * size, (at + 1) * size));
}
