import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { frameRecord, type MessageRecord, messageRecordCodec, type RecordCodec, TOPICS } from '@playline/contracts';
import { freePorts } from '@playline/infra/local';
import type { LogReader, OutgoingRecord, StreamRecord } from '@playline/stream';
import * as log from '@playline/stream/kafka';
import { openOwnStores, testStores, until } from '@playline/testkit';
import { createAddresses } from '../addresses.ts';
import { runCommand } from '../app.ts';
import { createLogCommands } from '../commands/log-commands.ts';
import { configSchema } from '../config.ts';

const WRITER = new URL('../../../event-writer/src/main.ts', import.meta.url).pathname;
const LINKER = new URL('../../../identity-linker/src/main.ts', import.meta.url).pathname;
const OPERATOR = new URL('../main.ts', import.meta.url).pathname;
/** A process starts in a second, or in half a minute where eight others want the same two cores. */
const START_MS = 50_000;

export interface Answer {
  readonly code: number;
  readonly lines: string[];
  readonly json: unknown;
}

/** Commands as they are, on the stores of a test. */
function createOperate(environment: Record<string, string>, prefix: string) {
  const addresses = createAddresses(configSchema.parse(environment), '/nowhere');
  return async (...args: string[]): Promise<Answer> => {
    const lines: string[] = [];
    const { signal } = new AbortController();
    const commands = createLogCommands(log, { addresses, topicPrefix: prefix, stop: signal });
    const code = await runCommand(commands, args, {
      result: (line) => void lines.push(line),
      progress: () => {},
      isInteractive: false,
    });
    return { code, lines, json: args.includes('--json') ? JSON.parse(lines[0] ?? 'null') : null };
  };
}

function createProcesses(environment: Record<string, string>) {
  const running = new Set<ChildProcess>();
  const start = (args: string[], settings: Record<string, string>) => {
    const env = { PATH: process.env.PATH, ...environment, ...settings };
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'inherit'] });
    running.add(child);
    child.once('exit', () => running.delete(child));
    return child;
  };
  const stop = async (child: ChildProcess, signal: NodeJS.Signals) => {
    const exit = once(child, 'exit');
    if (child.exitCode === null && child.signalCode === null) {
      child.kill(signal);
      await exit;
    }
  };
  return {
    stop,
    operatorProcess: (...args: string[]) => start([OPERATOR, ...args], {}),
    startWriter: async (settings: Record<string, string> = {}) => {
      const [port] = await freePorts(1);
      const fixed = { ADMIN_PORT: String(port), SESSION_TIMEOUT_MS: '2000', BLOCK_AGE_MAX_MS: '50' };
      const child = start([WRITER], { ...fixed, CONSUMER_GROUP: `${environment.TOPIC_PREFIX}writer`, ...settings });
      await until('the writer is ready', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok, START_MS);
      return child;
    },
    /** Needs at least REDIS_URL and IDENTITY_PEPPER; resolves when it lives, since without an epoch it is not ready. */
    startLinker: async (settings: Record<string, string>) => {
      const [port] = await freePorts(1);
      const fixed = { ADMIN_PORT: String(port), SESSION_TIMEOUT_MS: '6000' };
      const child = start([LINKER], { ...fixed, CONSUMER_GROUP: `${environment.TOPIC_PREFIX}linker`, ...settings });
      const adminUrl = `http://127.0.0.1:${port}`;
      await until('the linker lives', async () => (await fetch(`${adminUrl}/livez`)).ok, START_MS);
      return { child, adminUrl };
    },
    killAll: () => Promise.all([...running].map((child) => stop(child, 'SIGKILL'))),
  };
}

/** Creates the question whether a group has committed all that a topic holds. */
function createIsCaughtUp(reader: LogReader, prefix: string) {
  return async (topic: string, consumers: string): Promise<boolean> => {
    const committed = await reader.committed(consumers, prefix + topic);
    const bounds = await reader.bounds(prefix + topic);
    return bounds.every(({ partition, end }) => (committed.get(partition) ?? 0) >= end);
  };
}

/** Topics and a database of their own in the real stores, a writer for them, and the operator's commands. */
export async function openLogFixture() {
  const brokers = testStores().kafka;
  const own = await openOwnStores();
  const { prefix, query, schemaIdOf } = own;
  const environment = { ...own.environment, LOG_LEVEL: 'silent' };
  const producer = await log.openProducer({ brokers, clientId: 'test' });
  await until('the producer is ready', () => producer.ready());
  const reader: LogReader = log.openLogReader({ brokers, clientId: 'test' });
  const processes = createProcesses(environment);
  const group = `${prefix}writer`;
  const publish = (records: readonly OutgoingRecord[]) =>
    new Promise<void>((resolve, reject) => {
      producer.send(records, (fault) => (fault === null ? resolve() : reject(fault)));
    });
  const toRecord = <R>(topic: string, codec: RecordCodec<R>, record: R): OutgoingRecord => ({
    topic: prefix + topic,
    key: null,
    value: frameRecord(schemaIdOf(prefix + topic), codec.encode(record)),
  });
  const isCaughtUp = createIsCaughtUp(reader, prefix);
  return {
    ...processes,
    prefix,
    environment,
    brokers,
    group,
    producer,
    query,
    publish,
    toRecord,
    toMessage: (record: MessageRecord) => toRecord(TOPICS.messages.name, messageRecordCodec, record),
    operate: createOperate(environment, prefix),
    /** Everything of a topic that is not undone. */
    read: async (topic: string): Promise<StreamRecord[]> => {
      const records: StreamRecord[] = [];
      for (const bounds of await reader.bounds(prefix + topic))
        for await (const record of reader.read({ topic: prefix + topic, ...bounds })) records.push(record);
      return records;
    },
    isCaughtUp,
    /** Resolves when the writer has committed all that a topic holds. */
    caughtUp: (topic: string) => until(`the writer has all of ${topic}`, () => isCaughtUp(topic, group)),
    close: async () => {
      await processes.killAll();
      await Promise.all([producer.close(), reader.close()]);
      await own.close();
    },
  };
}

export type LogFixture = Awaited<ReturnType<typeof openLogFixture>>;
