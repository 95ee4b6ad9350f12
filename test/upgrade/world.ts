import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePorts } from '@playline/infra/ports';
import { bareEnvironment, openOwnStores, openRedisDatabase, until } from '@playline/testkit';
import type { Release } from './release.ts';

/** A process starts within a second, or within 30 s if eight other processes compete for two cores. */
const START_MS = 50_000;

export type ServiceName = 'gateway' | 'identity-linker' | 'event-writer';

export interface RunningService {
  readonly release: Release['name'];
  /** Public URL; only a gateway has one. */
  readonly url: string;
  stop(): Promise<void>;
}

export interface UpgradeWorld {
  readonly prefix: string;
  readonly project: string;
  query<T>(sql: string): Promise<T[]>;
  start(release: Release, service: ServiceName): Promise<RunningService>;
  /** Registers a release's schemas and creates its tables. @returns the commands' output */
  deploy(release: Release): Promise<string>;
  /** Runs a release's operator command. @returns the command's standard output */
  operate(release: Release, ...args: string[]): Promise<string>;
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
    // The current partition count, so that deploying the next release changes only schemas.
    TOPIC_PARTITIONS: '2',
  };
  const run = async (file: string, args: string[] = []) =>
    (await promisify(execFile)(process.execPath, [file, ...args], { cwd: folder, env: environment })).stdout;
  const running = new Set<RunningService>();
  return {
    prefix: stores.prefix,
    project,
    query: async <T>(sql: string) => parseLines<T>(await stores.query(`${sql} FORMAT JSONEachRow`)),
    start: async ({ name, folder: sources }, service) => {
      const file = join(sources, 'services', service, 'src/main.ts');
      const settings = { ...environment, CONSUMER_GROUP: stores.prefix + service };
      const started = await startService(file, { service, environment: settings, folder });
      const handle: RunningService = {
        release: name,
        url: started.url,
        stop: async () => {
          running.delete(handle);
          await started.stop();
        },
      };
      running.add(handle);
      return handle;
    },
    deploy: async ({ folder: sources }) =>
      (await run(join(sources, 'infra/clickhouse/main.ts'))) + (await run(join(sources, 'infra/kafka/main.ts'))),
    operate: ({ folder: sources }, ...args) => run(join(sources, 'services/operator/src/main.ts'), args),
    close: async () => {
      await Promise.all([...running].map((service) => service.stop()));
      await redis.close();
      await stores.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The shortest session timeout that brokers allow by default. */
const SESSION_TIMEOUT_MS = 6_000;

interface ServiceOptions {
  service: ServiceName;
  environment: Record<string, string>;
  folder: string;
}

async function startService(file: string, { service, environment, folder }: ServiceOptions) {
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
  const ended = once(child, 'exit');
  const isReady = async () => (await fetch(`http://127.0.0.1:${adminPort}/readyz`)).ok;
  await until(`${service} is ready`, isReady, START_MS);
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
    await ended;
  };
  return { url: `http://127.0.0.1:${httpPort}`, stop };
}

function parseLines<T>(text: string): T[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}
