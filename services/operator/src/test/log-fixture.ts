import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { frameRecord, type MessageRecord, messageRecordCodec, type RecordCodec, TOPICS } from '@playline/contracts';
import { freePorts } from '@playline/infra/ports';
import type { OutgoingRecord } from '@playline/stream';
import { bareEnvironment, openOwnStores, testStores, until } from '@playline/testkit';
import { openLogAccess } from './log-access.ts';
import { createOperate } from './operate.ts';

const WRITER = new URL('../../../event-writer/src/main.ts', import.meta.url).pathname;
/** Uses blocks below the usual minimum size, so that events are stored immediately. */
const SMALL_BLOCKS = {
  NODE_OPTIONS: `--import=${new URL('../../../event-writer/src/test/small-blocks.ts', import.meta.url).href}`,
};
const LINKER = new URL('../../../identity-linker/src/main.ts', import.meta.url).pathname;
const OPERATOR = new URL('../main.ts', import.meta.url).pathname;
/** A process starts within a second, or within 30 s on a busy machine. */
const START_MS = 50_000;

function createProcesses(environment: Record<string, string>) {
  const running = new Set<ChildProcess>();
  const start = (args: string[], settings: Record<string, string>) => {
    const env = { ...bareEnvironment(), ...environment, ...settings };
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
      const fixed = { ADMIN_PORT: String(port), SESSION_TIMEOUT_MS: '2000', BLOCK_AGE_MAX_MS: '50', ...SMALL_BLOCKS };
      const child = start([WRITER], { ...fixed, CONSUMER_GROUP: `${environment.TOPIC_PREFIX}writer`, ...settings });
      await until('the writer is ready', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok, START_MS);
      return child;
    },
    /** Requires REDIS_URL and IDENTITY_PEPPER. Resolves when the linker is live; without an epoch it is never ready. */
    startLinker: async (settings: Record<string, string>) => {
      const [port] = await freePorts(1);
      const fixed = { ADMIN_PORT: String(port), SESSION_TIMEOUT_MS: '3000' };
      const child = start([LINKER], { ...fixed, CONSUMER_GROUP: `${environment.TOPIC_PREFIX}linker`, ...settings });
      const adminUrl = `http://127.0.0.1:${port}`;
      await until('the linker is live', async () => (await fetch(`${adminUrl}/livez`)).ok, START_MS);
      return { child, adminUrl };
    },
    killAll: () => Promise.all([...running].map((child) => stop(child, 'SIGKILL'))),
  };
}

/** Opens isolated topics and a database in the real stores, with writers, linkers and the operator commands. */
export async function openLogFixture() {
  const brokers = testStores().kafka;
  const stores = await openOwnStores();
  const { prefix, query, schemaIdOf } = stores;
  const environment = { ...stores.environment, LOG_LEVEL: 'silent' };
  const log = await openLogAccess(brokers);
  const processes = createProcesses(environment);
  const group = `${prefix}writer`;
  const toRecord = <R>(topic: string, codec: RecordCodec<R>, record: R): OutgoingRecord => ({
    topic: prefix + topic,
    key: null,
    value: frameRecord(schemaIdOf(prefix + topic), codec.encode(record)),
  });
  const isCaughtUp = async (topic: string, consumers: string) => (await log.lag(prefix + topic, consumers)) === 0;
  return {
    ...processes,
    prefix,
    environment,
    brokers,
    group,
    producer: log.producer,
    query,
    publish: log.publish,
    toRecord,
    toMessage: (record: MessageRecord) => toRecord(TOPICS.messages.name, messageRecordCodec, record),
    operate: createOperate(environment, prefix),
    read: (topic: string) => log.read(prefix + topic),
    isCaughtUp,
    awaitCaughtUp: (topic: string) => until(`the writer has written all of ${topic}`, () => isCaughtUp(topic, group)),
    close: async () => {
      await processes.killAll();
      await log.close();
      await stores.close();
    },
  };
}

export type LogFixture = Awaited<ReturnType<typeof openLogFixture>>;
