import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { promisify } from 'node:util';
import { applySql } from '@playline/infra/clickhouse';
import { loadSecrets, stackPathsOf, startStack, sweepStacks } from '@playline/infra/local';
import type { TestProject } from 'vitest/node';
import { type DatabaseTarget, runStatement, toDatabaseName } from './clickhouse-target.ts';
import { parentOfStacks, testStackFolder } from './stack-folder.ts';
import type { Stores, TestStores } from './stores.ts';

/** An engine that takes longer to say its version is stuck or far away. */
const ENGINE_ANSWER_MS = 2000;

/** The stores of a run, and a database there with every table to copy. */
interface RunStores {
  readonly stores: TestStores;
  readonly template: DatabaseTarget;
  /** Removes what the run has made. */
  stop(): Promise<void>;
}

async function hasContainerEngine(): Promise<boolean> {
  try {
    await promisify(execFile)('docker', ['version', '--format', '{{.Server.Version}}'], { timeout: ENGINE_ANSWER_MS });
    return true;
  } catch {
    return false;
  }
}

async function startContainerStores(): Promise<RunStores> {
  // Loaded only where it is needed: its client takes longer to load than Redis takes to start.
  const { startContainers } = await import('./containers.ts');
  const { stores, stop } = await startContainers();
  try {
    return { stores, template: await openTableTemplate(stores), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Stores that somebody else keeps. */
async function useGivenStores(stores: TestStores): Promise<RunStores> {
  const template = await openTableTemplate(stores);
  const stop = async () => void (await runStatement(template, `DROP DATABASE ${template.database} SYNC`));
  return { stores, template, stop };
}

async function openRunStores(given: string): Promise<RunStores> {
  if (given !== '') return useGivenStores(JSON.parse(given));
  return (await hasContainerEngine()) ? startContainerStores() : startLocalStores();
}

/**
 * Gives the test run its stores: those of `PLAYLINE_TEST_STORES` (JSON, the shape of `TestStores`), else containers where a
 * container engine answers, else the stores of infra/local as processes of this machine. They end with the run. Every test
 * is told their addresses, and a database with every table to copy.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { stores, template, stop } = await openRunStores(process.env.PLAYLINE_TEST_STORES ?? '');
  project.provide('stores', stores);
  project.provide('tableTemplate', template);
  return stop;
}

/**
 * Starts the four stores as processes on free ports with fresh data, and makes the template of tables while Kafka and the
 * registry still start; what earlier runs left behind is ended first.
 * @throws Error that says what to install when the machine lacks something
 */
export async function startLocalStores(): Promise<{
  stores: TestStores;
  template: DatabaseTarget;
  stop(): Promise<void>;
}> {
  await sweepStacks(stackPathsOf, parentOfStacks());
  const directory = testStackFolder('run');
  const remove = () => rmSync(directory, { recursive: true, force: true });
  const say = (line: string) => console.error(`stores: ${line}`);
  // A start that has ended well has filled it.
  let template!: DatabaseTarget;
  const fillClickHouse = async (clickhouse: Stores['clickhouse']) => {
    template = await openTableTemplate({ clickhouse });
  };
  const options = { directory, services: [], say, fillClickHouse, isThrownAway: true };
  const stack = await startStack(options).catch((error) => {
    remove();
    throw error;
  });
  const { kafka, redis, clickhouse, registry } = stack.file;
  const { url, user, password } = clickhouse;
  const { portalPassword, viewsPassword } = loadSecrets(stackPathsOf(directory));
  return {
    stores: { kafka, redis, clickhouse: { url, user, password }, portalPassword, viewsPassword, registry },
    template,
    async stop() {
      await stack.stop();
      remove();
    },
  };
}

/** Creates the database that the others of a test run are copied from. */
async function openTableTemplate({ clickhouse }: Pick<Stores, 'clickhouse'>): Promise<DatabaseTarget> {
  const target = { ...clickhouse, database: toDatabaseName() };
  await applySql(target);
  return target;
}
