import { execFile } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CHECKOUT, createStackFetch, type StackFile, type StackOptions, startStack } from '@playline/infra/local';
import { overAllNodes } from '@playline/stores';
import { bareEnvironment, smallMessage, testStackFolder, until } from '@playline/testkit';
import { Redis } from 'ioredis';

export interface Exit {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export function runProgram(
  main: string,
  args: readonly string[],
  { cwd = CHECKOUT, env = {} }: { cwd?: string; env?: Record<string, string> } = {},
): Promise<Exit> {
  const options = { cwd, env: { ...bareEnvironment(), ...env }, maxBuffer: 2 ** 28 };
  return new Promise((done) => {
    execFile(process.execPath, [join(CHECKOUT, main), ...args], options, (error, out, err) =>
      done({ code: error === null ? 0 : Number(error.code ?? 1), out, err }),
    );
  });
}

export const OPERATOR = 'services/operator/src/main.ts';

export type JourneyStack = Awaited<ReturnType<typeof startJourneyStack>>;

let isCluster = false;

/** Test files that are imported afterwards start their stacks as clusters. */
export function useCluster(): void {
  isCluster = true;
}

/** Starts a separate stack. @param root a folder that `close` removes */
export async function startJourneyStack(options: StackOptions = {}, root = testStackFolder('journey')) {
  // Commands read the stack's files from a folder with this name.
  const folder = join(root, '.playline');
  const stack = await startStack({ cluster: isCluster, ...options, directory: folder });
  const read = (name: string) => JSON.parse(readFileSync(join(folder, name), 'utf8'));
  const file = (): StackFile => read('stack.json');
  const { keys, clickhouse } = file();
  if (keys === undefined) throw new Error('the stack has no demo keys');
  const common = { 'content-type': 'application/json', 'x-service-publishable-key': keys.production.publishable };
  return {
    stack,
    folder,
    /** Reads the current stack file. Process ids change when processes are restarted. */
    file,
    /** Runs an operator command on this stack and returns the output. @throws Error if the command fails */
    operate: async (...args: string[]) => {
      const { code, out, err } = await runProgram(OPERATOR, args, { cwd: root });
      if (code !== 0) throw new Error(`${args.join(' ')} exited with ${code}: ${err}`);
      return out;
    },
    close: async () => {
      await stack.stop();
      rmSync(root, { recursive: true, force: true });
    },
    keys,
    /** The table with the rows of all nodes. */
    events: `${overAllNodes(clickhouse).database}.events`,
    /** The analyst account. The stack file contains the operator's account. */
    analyst: { ...clickhouse, user: 'analyst', password: read('secrets.json').analystPassword },
    query: <T>(sql: string): Promise<T[]> => query(file().clickhouse, sql, file().security?.caFile),
    post: async (messages: unknown[], headers: Record<string, string> = {}) => {
      const response = await fetch(`${file().gateway}/v1/audience/messages`, {
        method: 'POST',
        headers: { ...common, ...headers },
        body: JSON.stringify({ messages }),
      });
      return { status: response.status, body: (await response.json()) as unknown };
    },
  };
}

type Engine = StackFile['clickhouse'];

export async function query<T>(engine: Engine, sql: string, caFile?: string): Promise<T[]> {
  const send = caFile === undefined ? fetch : createStackFetch(caFile);
  const url = new URL(engine.url);
  url.searchParams.set('database', engine.database);
  url.searchParams.set('default_format', 'JSONEachRow');
  const headers = { 'x-clickhouse-user': engine.user, 'x-clickhouse-key': engine.password };
  const response = await send(url, { method: 'POST', headers, body: sql });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as T);
}

/** Waits until the exact view contains all of these messages. @returns the row counts in the table and the view */
export async function countStored(stack: JourneyStack, messageIds: readonly string[]) {
  const ids = messageIds.map((id) => `'${id}'`).join();
  const count = async (table: string) => {
    const sql = `SELECT toString(count()) AS n FROM ${table} WHERE message_id IN (${ids})`;
    return Number((await stack.query<{ n: string }>(sql))[0]?.n);
  };
  const isComplete = async () => (await count('events_exact')) >= messageIds.length;
  await until(`${messageIds.length} messages are in events_exact`, isComplete);
  return { raw: await count(stack.events), exact: await count('events_exact') };
}

export async function readRecords<R>(url: string, kind: string): Promise<R[]> {
  const redis = new Redis(url);
  const texts = await redis.hvals(`access:${kind}`).finally(() => redis.disconnect());
  return texts.map((text) => JSON.parse(text.slice(text.indexOf('{'))) as R);
}

export const trackMessage = (extra: Record<string, unknown> = {}) => smallMessage('track', extra);
