import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePorts } from '@playline/infra/ports';
import { bareEnvironment, openOwnStores, openRedisDatabase, until } from '@playline/testkit';
import type { Release } from './release.ts';

/** A process starts within a second. Five processes that start on two busy cores took more than 50 s. */
const START_MS = 150_000;

export interface RunningService {
  /** Public URL; only a gateway has one. */
  readonly url: string;
  /** Version that the process reports. */
  readonly version: string;
  /** Sends SIGTERM. @returns the exit code */
  stop(): Promise<number | null>;
}

export interface UpgradeWorld {
  readonly prefix: string;
  readonly project: string;
  query<T>(sql: string): Promise<T[]>;
  /** Executes a statement without a result. */
  execute(sql: string): Promise<unknown>;
  start(release: Release, service: string): Promise<RunningService>;
  /** Creates a release's topics and registers its schemas. @returns the command's output */
  deployTopics(release: Release): Promise<string>;
  /** Creates a release's tables or applies its migrations. @returns the command's output */
  deployTables(release: Release): Promise<string>;
  /** Runs a release's operator command. @returns the command's standard output */
  operate(release: Release, ...args: string[]): Promise<string>;
  /** Writes a file for a command. @returns the path */
  writeFile(name: string, text: string): string;
  close(): Promise<void>;
}

export async function openWorld(): Promise<UpgradeWorld> {
  const stores = await openOwnStores();
  const project = `test-${randomBytes(4).toString('hex')}`;
  // Commands use the stack in their working folder, so they run in an empty folder.
  const folder = mkdtempSync(join(tmpdir(), 'playline-upgrade-'));
  const redis = await openRedisDatabase();
  const environment = {
    ...bareEnvironment(),
    ...stores.environment,
    LOG_LEVEL: 'warn',
    REDIS_URL: redis.url,
    IDENTITY_PEPPER: '05'.repeat(32),
    BLOCK_AGE_MAX_MS: '250',
    // Another run on the same machine may delay the brokers by seconds.
    PUBLISH_DEADLINE_MS: '20000',
    WRITER_GROUP: `${stores.prefix}event-writer`,
    LINKER_GROUP: `${stores.prefix}identity-linker`,
    // The current partition count, so that deploying the next release changes only schemas.
    TOPIC_PARTITIONS: '2',
  };
  const run = async (file: string, args: string[] = []) =>
    (await promisify(execFile)(process.execPath, [file, ...args], { cwd: folder, env: environment })).stdout;
  const children = new Set<ChildProcess>();
  return {
    prefix: stores.prefix,
    project,
    execute: (sql) => stores.query(sql),
    query: async <T>(sql: string) => parseLines<T>(await stores.query(`${sql} FORMAT JSONEachRow`)),
    start: async ({ folder: sources }, service) => {
      const file = join(sources, 'services', service, 'src/main.ts');
      const settings = { ...environment, CONSUMER_GROUP: stores.prefix + service };
      return startService(file, { service, environment: settings, folder, children });
    },
    deployTopics: ({ folder: sources }) => run(join(sources, 'infra/kafka/main.ts')),
    deployTables: ({ folder: sources }) => run(join(sources, 'infra/clickhouse/main.ts')),
    operate: ({ folder: sources }, ...args) => run(join(sources, 'services/operator/src/main.ts'), args),
    writeFile: (name, text) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    },
    close: async () => {
      await Promise.all([...children].map(stop));
      await redis.close();
      await stores.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Processes leave their groups on SIGTERM, so a long timeout delays nothing, and a busy machine expels no member. */
const SESSION_TIMEOUT_MS = 45_000;

interface ServiceOptions {
  service: string;
  environment: Record<string, string>;
  folder: string;
  /** Receives the process, which may never become ready, and loses it when it exits. */
  children: Set<ChildProcess>;
}

async function startService(file: string, options: ServiceOptions): Promise<RunningService> {
  const { service, environment, folder, children } = options;
  const [httpPort, adminPort] = await freePorts(2);
  const child: ChildProcess = spawn(process.execPath, [file], {
    cwd: folder,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {
      ...environment,
      SESSION_TIMEOUT_MS: String(SESSION_TIMEOUT_MS),
      HTTP_PORT: String(httpPort),
      ADMIN_PORT: String(adminPort),
    },
  });
  children.add(child);
  child.once('exit', () => children.delete(child));
  const readVersion = async () => {
    const response = await fetch(`http://127.0.0.1:${adminPort}/readyz`);
    return response.ok ? ((await response.json()) as { version: string }).version : null;
  };
  const version = await until(`${service} is ready`, readVersion, START_MS);
  return { url: `http://127.0.0.1:${httpPort}`, version, stop: () => stop(child) };
}

async function stop(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  return (await exit)[0];
}

function parseLines<T>(text: string): T[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}
