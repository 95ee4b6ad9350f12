/** A complete stack in a folder, whose stores can be lost, and whose commands run as processes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHECKOUT, type StackFile, type StackOptions, startStack } from '@playline/infra/local';
import { createQueryRows, readRows } from '@playline/stores';
import { bareEnvironment, smallMessage, testStackFolder, until } from '@playline/testkit';

const SERVICES = ['gateway', 'identity-linker', 'event-writer', 'activity-writer', 'eraser'] as const;
/** Messages per request. */
const BATCH_MAX = 100;
type StoreName = 'kafka' | 'registry' | 'redis' | 'clickhouse';

export interface Command {
  readonly child: ChildProcess;
  readonly results: () => string;
  /** Results, progress and errors. */
  readonly output: () => string;
  readonly exit: Promise<number | null>;
}

/** @param environment environment variables of all commands */
export function openTestStack(
  environment: () => Readonly<Record<string, string>>,
  kind: Pick<StackOptions, 'cluster'> = {},
) {
  const root = testStackFolder('backup');
  const directory = join(root, '.playline');
  const outputs: string[][] = [];
  let stack: Awaited<ReturnType<typeof startStack>> | null = null;
  const file = (): StackFile => JSON.parse(readFileSync(join(directory, 'stack.json'), 'utf8'));
  const secrets = () => JSON.parse(readFileSync(join(directory, 'secrets.json'), 'utf8'));
  const start = async (options: StackOptions) => {
    stack = await startStack({ directory, ...kind, ...options });
  };
  const stop = async () => {
    await stack?.stop();
    stack = null;
  };
  const runAs = async (user: string, password: string, sql: string) =>
    readRows(createQueryRows({ ...file().clickhouse, user, password })(sql));
  const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Command => {
    const main = join(CHECKOUT, 'services/operator/src/main.ts');
    const child = spawn(process.execPath, [main, ...args], {
      cwd: root,
      env: { ...bareEnvironment(), ...environment(), ...env },
    });
    const [results, all]: [string[], string[]] = [[], []];
    outputs.push(all);
    child.stdout.on('data', (chunk) => results.push(String(chunk)));
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => all.push(String(chunk)));
    const exit = new Promise<number | null>((done) => child.once('close', done));
    return { child, results: () => results.join(''), output: () => all.join(''), exit };
  };
  return {
    backups: join(root, 'backups'),
    /** Everything that commands have printed. */
    output: () => outputs.flat().join(''),
    /** Gives a stack that has not been started the secrets of another stack. */
    useSecretsOf(other: { readonly directory: string }) {
      mkdirSync(directory, { recursive: true });
      copyFileSync(join(other.directory, 'secrets.json'), join(directory, 'secrets.json'));
    },
    directory,
    readSecrets: (): string[] => Object.values(secrets()).filter((value) => typeof value === 'string'),
    writeFile(name: string, content: string): string {
      const path = join(root, name);
      writeFileSync(path, content);
      return path;
    },
    file,
    run,
    /** Runs a command to its end. @returns its results @throws Error if it fails */
    async operate(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
      const command = run(args, env);
      const code = await command.exit;
      if (code !== 0) throw new Error(`${args.join(' ')} exited with ${code}: ${command.output()}`);
      return command.results();
    },
    startAll: (settings: Record<string, string> = {}) => start({ services: SERVICES, settings }),
    /** Starts the stores, and creates missing topics and tables. */
    startStores: () => start({ services: [], createsTables: true }),
    stop,
    /** Deletes the data of stopped stores. */
    lose(...stores: readonly StoreName[]) {
      for (const name of stores) rmSync(join(directory, 'data', name), { recursive: true, force: true });
    },
    query: (sql: string) => runAs('operator', secrets().operatorPassword, sql),
    queryAsAnalyst: (sql: string) => runAs('analyst', secrets().analystPassword, sql),
    async post(messages: readonly object[]): Promise<void> {
      const headers = {
        'content-type': 'application/json',
        'x-service-publishable-key': file().keys!.production.publishable,
      };
      for (let at = 0; at < messages.length; at += BATCH_MAX) {
        const body = JSON.stringify({ messages: messages.slice(at, at + BATCH_MAX) });
        const response = await fetch(`${file().gateway}/v1/audience/messages`, { method: 'POST', headers, body });
        if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
      }
    },
    /** @returns the erasure id */
    async erase(userId: string): Promise<string> {
      const headers = { 'x-service-api-key': file().keys!.production.secret };
      const response = await fetch(`${file().gateway}/v1/audience/data?userId=${userId}`, {
        method: 'DELETE',
        headers,
      });
      const id = response.headers.get('x-erasure-id');
      if (response.status !== 202 || id === null) throw new Error(`${response.status}: ${await response.text()}`);
      return id;
    },
    close: async () => {
      await stop();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

export type TestStack = ReturnType<typeof openTestStack>;

/** Waits until the rows of all messages are stored. */
export const awaitStored = (stack: TestStack, ids: readonly string[]) =>
  until(`${ids.length} messages are stored`, async () => (await storedOf(stack, ids)).length === ids.length);

/** Returns the ids of the messages that have a row, once per row that queries return. */
export async function storedOf(stack: TestStack, ids: readonly string[]): Promise<string[]> {
  const list = ids.map((id) => `'${id}'`).join();
  const rows = await stack.query(`SELECT toString(message_id) FROM events_exact WHERE message_id IN (${list})`);
  return rows.map(([id]) => String(id)).sort();
}

export const awaitErased = (stack: TestStack, erasureId: string) =>
  until('the receipt is stored', async () => {
    const rows = await stack.query(`SELECT 1 FROM erasure_receipts WHERE erasure_id = '${erasureId}'`);
    return rows.length > 0;
  });

/** Returns a digest of the rows of each copied table, which does not depend on their order. */
export async function digestTables(stack: TestStack, tables: readonly string[]): Promise<Record<string, string>> {
  const digests: Record<string, string> = {};
  for (const table of tables) {
    const rows = await stack.query(
      `SELECT count(), hex(groupBitXor(sipHash64(formatRow('RowBinary', *)))) FROM ${table}`,
    );
    digests[table] = createHash('sha256').update(JSON.stringify(rows)).digest('hex');
  }
  return digests;
}

export interface Player {
  readonly userId: string;
  readonly messages: readonly ReturnType<typeof smallMessage>[];
  readonly ids: readonly string[];
}

/** Creates the messages of a player with an anonymous device and an account. Each event has the level 7. */
export function createPlayer(events: number): Player {
  const [anonymousId, userId] = [crypto.randomUUID(), crypto.randomUUID()];
  const track = () => smallMessage('track', { anonymousId, properties: { level: 7 } });
  const identify = smallMessage('identify', { anonymousId, userId, identityType: 'passport' });
  const messages = [...Array.from({ length: events }, track), identify];
  return { userId, messages, ids: messages.map(({ messageId }) => String(messageId)) };
}
