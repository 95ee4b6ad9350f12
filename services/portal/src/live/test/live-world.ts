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
import { type LiveHub, openLiveHub, type Subscription } from '../hub.ts';
import { LIVE_LIMITS, type LiveLimits } from '../limits.ts';
import type { Subscriber } from '../subscriber.ts';
import { type CountedLog, createCountedLog } from './counted-log.ts';

export const TOPICS = {
  messages: 'messages',
  rejections: 'rejections',
  deadLetters: ['messages.dead', 'rejections.dead'],
};
export const WRITER = 'event-writer';
const [MESSAGE_SCHEMA, REJECTION_SCHEMA] = [1, 2];

/** A looker whose events are collected as they come. */
export interface TestSubscriber {
  readonly subscriber: Subscriber;
  readonly events: LiveEvent[];
  readonly isOver: boolean;
  of<K extends LiveEvent['kind']>(kind: K): Extract<LiveEvent, { kind: K }>[];
  /** The last one told. */
  status(): Extract<LiveEvent, { kind: 'status' }> | undefined;
}

export interface LiveWorld {
  readonly hub: LiveHub;
  /** What was asked of the brokers. */
  readonly requested: CountedLog['requested'];
  readonly faults: unknown[];
  /** Identities that are fenced, by hexadecimal key; the fences are not loaded while `isLoaded` is false. */
  readonly fences: { readonly keys: Set<string>; isLoaded: boolean; opened: number };
  /** The brokers answer nothing while it is true. */
  readonly brokers: CountedLog;
  /** Puts a message on the log, to a partition where one is given. */
  send(changes?: Partial<MessageRecord>, partition?: number): Promise<RecordMetadata>;
  reject(changes?: Partial<RejectionRecord>): Promise<RecordMetadata>;
  /** Makes a dead letter of a record of a topic. */
  bury(topic: string, place: RecordMetadata, reason?: string): Promise<RecordMetadata>;
  /** The writer has committed so far. */
  commit(partition: number, offset: number): void;
  /** Looks, and waits until it is watched from where on. */
  subscribe(request?: Partial<Subscription>): Promise<TestSubscriber>;
}

/** Fast enough for tests, with the proportions of the real ones. */
export const FAST: LiveLimits = {
  ...LIVE_LIMITS,
  pollMs: 20,
  deadLettersPollMs: 40,
  sweepMs: 10,
  statusMs: 40,
  permissionMs: 50,
};

/** A hub over a log in memory; it closes by itself after the test. */
export function createLiveWorld(limits: Partial<LiveLimits> = {}): LiveWorld {
  const log = createMemoryLog();
  const brokers = createCountedLog(log);
  const fences: LiveWorld['fences'] = { keys: new Set(), isLoaded: true, opened: 0 };
  const faults: unknown[] = [];
  const hub = openLiveHub({
    log: brokers.reader,
    topics: TOPICS,
    writerGroup: WRITER,
    limits: { ...FAST, ...limits },
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
    requested: brokers.requested,
    ...createSends(log),
    commit: (partition, offset) => void brokers.committed.set(partition, offset),
    subscribe: async (request = {}) => {
      const looker = collect(
        hub.subscribe({
          environmentId: 'demo',
          filter: NO_FILTER,
          masks: false,
          isStillAllowed: () => true,
          ...request,
        }),
      );
      await until('it is watched', () => looker.status()?.isWatching === true || looker.isOver);
      return looker;
    },
  };
}

function openTestFences(fences: LiveWorld['fences']): FenceSet & { close(): Promise<void> } {
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

/** Puts records on the log. */
function createSends(log: MemoryLog): Pick<LiveWorld, 'send' | 'reject' | 'bury'> {
  const producer = log.openProducer();
  const put = (topic: string, value: Buffer, more: object = {}) =>
    producer.sendForOffset({ topic, key: null, value, ...more });
  return {
    send: (changes, partition) => {
      const record = messageRecordOf('level_started', { environmentId: 'demo', ...changes });
      const value = frameRecord(MESSAGE_SCHEMA, messageRecordCodec.encode(record));
      return put(TOPICS.messages, value, partition === undefined ? {} : { partition });
    },
    reject: (changes) =>
      put(TOPICS.rejections, frameRecord(REJECTION_SCHEMA, rejectionCodec.encode(rejectionOf(changes)))),
    bury: (topic, { partition, offset }, reason = 'cannot be stored: secret words') => {
      const { value } = log
        .records(topic)
        .find((record) => record.partition === partition && record.offset === offset)!;
      const place = { 'original-partition': String(partition), 'original-offset': String(offset) };
      return put(`${topic}.dead`, value!, { headers: { reason, 'original-topic': topic, ...place } });
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
    ...changes,
  };
}

/** Takes everything that a looker is told. */
export function collect(looker: Subscriber): TestSubscriber {
  const events: LiveEvent[] = [];
  let isOver = false;
  const run = async () => {
    for (;;) {
      const event = await looker.next(1_000);
      if (event === null) break;
      if (event !== 'nothing') events.push(event);
    }
    isOver = true;
  };
  void run();
  const of: TestSubscriber['of'] = (kind) => events.filter((event) => event.kind === kind) as never;
  return {
    subscriber: looker,
    events,
    of,
    status: () => of('status').at(-1),
    get isOver() {
      return isOver;
    },
  };
}
