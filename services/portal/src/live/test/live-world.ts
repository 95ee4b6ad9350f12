import {
  frameRecord,
  type MessageRecord,
  messageRecordCodec,
  type RejectionRecord,
  rejectionCodec,
} from '@playline/contracts';
import type { FenceSet } from '@playline/erasure';
import type { RecordMetadata } from '@playline/stream';
import { createMemoryLog, type MemoryLog } from '@playline/stream/memory';
import { messageRecordOf } from '@playline/testkit/message-record';
import { until } from '@playline/testkit/until';
import { onTestFinished } from 'vitest';
import type { LiveEvent } from '../event.ts';
import { NO_FILTER } from '../filter.ts';
import { openLiveHub, type Subscription } from '../hub.ts';
import { LIVE_LIMITS, type LiveLimits } from '../limits.ts';
import type { Subscriber } from '../subscriber.ts';
import { createCountingLog } from './counting-log.ts';

export const TOPICS = {
  messages: 'messages',
  rejections: 'rejections',
  deadLetters: ['messages.dead', 'rejections.dead'],
};
export const WRITER_GROUP = 'event-writer';
const [MESSAGE_SCHEMA, REJECTION_SCHEMA] = [1, 2];

export type LiveWorld = ReturnType<typeof createLiveWorld>;

export const FAST_LIMITS: LiveLimits = {
  ...LIVE_LIMITS,
  pollMs: 20,
  deadLettersPollMs: 40,
  fenceCheckMs: 10,
  statusMs: 40,
  permissionMs: 50,
};

/** Creates a hub that reads an in-memory log. Closes the hub after the test. */
export function createLiveWorld(limits: Partial<LiveLimits> = {}) {
  const log = createMemoryLog();
  const brokers = createCountingLog(log);
  const fences: Fences = { keys: new Set(), isLoaded: true, opened: 0 };
  const faults: unknown[] = [];
  const hub = openLiveHub({
    log: brokers.reader,
    topics: TOPICS,
    writerGroup: WRITER_GROUP,
    limits: { ...FAST_LIMITS, ...limits },
    schemaOf: async (id) => ({ 1: messageRecordCodec.schema, 2: rejectionCodec.schema })[id] ?? null,
    openFences: () => openTestFences(fences),
    onFault: (fault) => faults.push(fault),
  });
  onTestFinished(() => hub.close());
  return {
    hub,
    faults,
    fences,
    brokers,
    observed: brokers.observed,
    ...createSenders(log),
    commit: (partition: number, offset: number) => void brokers.committed.set(partition, offset),
    subscribe: async (request: Partial<Subscription> = {}) => {
      const client = collect(
        hub.subscribe({
          environmentId: 'demo',
          filter: NO_FILTER,
          shouldMask: false,
          isStillAllowed: () => true,
          ...request,
        }),
      );
      await until('the hub polls', () => client.status()?.isWatching === true || client.isOver);
      return client;
    },
  };
}

/** Fenced identity keys in hexadecimal digits. */
interface Fences {
  readonly keys: Set<string>;
  isLoaded: boolean;
  opened: number;
}

function openTestFences(fences: Fences): FenceSet & { close(): Promise<void> } {
  fences.opened++;
  return {
    get loaded() {
      return fences.isLoaded;
    },
    mayHold: () => true,
    isFenced: ({ key }) => fences.keys.has(key.toString('hex')),
    close: async () => void fences.opened--,
  };
}

function createSenders(log: MemoryLog) {
  const producer = log.openProducer();
  const append = (topic: string, value: Buffer, options: object = {}) =>
    producer.sendForOffset({ topic, key: null, value, ...options });
  return {
    send: (changes?: Partial<MessageRecord>, partition?: number) => {
      const record = messageRecordOf('level_started', { environmentId: 'demo', ...changes });
      const value = frameRecord(MESSAGE_SCHEMA, messageRecordCodec.encode(record));
      return append(TOPICS.messages, value, partition === undefined ? {} : { partition });
    },
    reject: (changes?: Partial<RejectionRecord>) =>
      append(TOPICS.rejections, frameRecord(REJECTION_SCHEMA, rejectionCodec.encode(rejectionOf(changes)))),
    deadLetter: (topic: string, { partition, offset }: RecordMetadata) => {
      const { value } = log
        .records(topic)
        .find((record) => record.partition === partition && record.offset === offset)!;
      const position = { 'original-partition': String(partition), 'original-offset': String(offset) };
      return append(`${topic}.dead`, value!, {
        headers: { reason: 'cannot be stored: secret text', 'original-topic': topic, ...position },
      });
    },
  };
}

function rejectionOf(changes: Partial<RejectionRecord> = {}): RejectionRecord {
  return {
    environmentId: 'demo',
    code: 'INVALID_FORMAT',
    field: 'eventName',
    surface: 'web',
    library: 'lib',
    libraryVersion: '1.0',
    receivedAt: 1_790_000_000_000,
    traceId: 'e'.repeat(32),
    messageIndex: 0,
    ...changes,
  };
}

/** Collects all events of a subscriber in the background. */
export function collect(subscriber: Subscriber) {
  const events: LiveEvent[] = [];
  let isOver = false;
  const run = async () => {
    for (;;) {
      const event = await subscriber.next(1_000);
      if (event === null) break;
      if (event !== 'timeout') events.push(event);
    }
    isOver = true;
  };
  void run();
  const ofKind = <K extends LiveEvent['kind']>(kind: K) =>
    events.filter((event): event is Extract<LiveEvent, { kind: K }> => event.kind === kind);
  return {
    subscriber,
    events,
    ofKind,
    status: () => ofKind('status').at(-1),
    get isOver() {
      return isOver;
    },
  };
}
