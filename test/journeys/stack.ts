import { execFile } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  CHECKOUT,
  createStackFetch,
  type KeyPair,
  type Stack,
  type StackFile,
  type StackOptions,
  startStack,
} from '@playline/infra/local';
import { bareEnvironment, smallMessage, testStackFolder, until } from '@playline/testkit';

const run = promisify(execFile);

/**
 * A whole separate pipeline: every store and every service as a process, in a folder that is removed after the test.
 */
export interface JourneyStack {
  stack: Stack;
  /** The current stack file. Process ids change when a process is restarted. */
  file(): StackFile;
  keys: { production: KeyPair; development: KeyPair };
  /** The analysts' account. The stack file has the operator's. */
  analyst: StackFile['clickhouse'];
  /** Rows of a query in the stack's database, as objects. */
  query<T>(sql: string): Promise<T[]>;
  post(messages: unknown[], headers?: Record<string, string>): Promise<{ status: number; body: unknown }>;
  /** Folder with all data and logs of the stack. */
  folder: string;
  /** Runs a command of the operator on this stack. @returns what it printed @throws Error when it fails */
  operate(...args: string[]): Promise<string>;
  /** Stops everything and removes the folder. */
  close(): Promise<void>;
}

export async function startJourneyStack(options: StackOptions = {}): Promise<JourneyStack> {
  const root = testStackFolder('journey');
  // Commands expect the stack's records in a folder of this name.
  const folder = join(root, '.playline');
  const stack = await startStack({ ...options, directory: folder });
  const read = (name: string) => JSON.parse(readFileSync(join(folder, name), 'utf8'));
  const file = (): StackFile => read('stack.json');
  const { keys, clickhouse } = file();
  if (keys === undefined) throw new Error('the stack has no demo keys');
  return {
    stack,
    folder,
    file,
    operate: async (...args) => {
      const program = join(CHECKOUT, 'services/operator/src/main.ts');
      return (await run(process.execPath, [program, ...args], { env: bareEnvironment(), cwd: root })).stdout;
    },
    close: async () => {
      await stack.stop();
      rmSync(root, { recursive: true, force: true });
    },
    keys,
    analyst: { ...clickhouse, user: 'analyst', password: read('secrets.json').analystPassword },
    query: (sql) => query(file().clickhouse, sql, file().security?.caFile),
    post: async (messages, headers = {}) => {
      const response = await fetch(`${file().gateway}/v1/audience/messages`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-service-publishable-key': keys.production.publishable,
          ...headers,
        },
        body: JSON.stringify({ messages }),
      });
      return { status: response.status, body: await response.json() };
    },
  };
}

type Engine = StackFile['clickhouse'];

/** @param caFile certificate authority of a ClickHouse with TLS */
export async function query<T>(engine: Engine, sql: string, caFile?: string): Promise<T[]> {
  const send = caFile === undefined ? fetch : createStackFetch(caFile);
  const url = new URL(engine.url);
  url.searchParams.set('database', engine.database);
  url.searchParams.set('default_format', 'JSONEachRow');
  const headers = { 'x-clickhouse-user': engine.user, 'x-clickhouse-key': engine.password };
  const response = await send(url, { method: 'POST', headers, body: sql });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return text === ''
    ? []
    : text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as T);
}

/** Waits until the exact view has all of these messages. @returns how often the table and the view have them */
export async function stored(
  stack: JourneyStack,
  messageIds: readonly string[],
): Promise<{ raw: number; exact: number }> {
  const ids = messageIds.map((id) => `'${id}'`).join();
  const count = async (table: string) => {
    const [row] = await stack.query<{ n: string }>(
      `SELECT toString(count()) AS n FROM ${table} WHERE message_id IN (${ids})`,
    );
    return Number(row?.n);
  };
  await until(
    `${messageIds.length} messages are in events_exact`,
    async () => {
      return (await count('events_exact')) >= messageIds.length;
    },
    60_000,
  );
  return { raw: await count('events'), exact: await count('events_exact') };
}

export const trackMessage = (extra: Record<string, unknown> = {}) => smallMessage('track', extra);
