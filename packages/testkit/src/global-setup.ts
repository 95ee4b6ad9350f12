import { rmSync } from 'node:fs';
import { applySql } from '@playline/infra/clickhouse';
import { loadSecrets, type StackOptions, stackPathsOf, startStack, sweepStacks } from '@playline/infra/local';
import type { TestProject } from 'vitest/node';
import { type DatabaseTarget, runStatement, toDatabaseName } from './clickhouse-target.ts';
import { parentOfStacks, testStackFolder } from './stack-folder.ts';
import type { Stores, TestStores } from './stores.ts';

/** The stores of a test run, and a template database with every table, which tests copy. */
export interface RunStores {
  readonly stores: TestStores;
  readonly template: DatabaseTarget;
  stop(): Promise<void>;
}

async function startContainerStores(): Promise<RunStores> {
  // Imported lazily, because the container client loads slowly.
  const { startContainers } = await import('./containers.ts');
  const { stores, stop } = await startContainers();
  try {
    return { stores, template: await openTableTemplate(stores), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function useConfiguredStores(stores: TestStores): Promise<RunStores> {
  const template = await openTableTemplate(stores);
  const stop = async () => void (await runStatement(template, `DROP DATABASE ${template.database} SYNC`));
  return { stores, template, stop };
}

async function openRunStores({
  PLAYLINE_TEST_STORES: configured,
  STORES: kind,
}: NodeJS.ProcessEnv): Promise<RunStores> {
  if (configured) return useConfiguredStores(JSON.parse(configured));
  if (kind !== undefined && kind !== 'containers') throw new Error(`STORES=${kind}: expected containers, or unset it`);
  return kind === 'containers' ? startContainerStores() : startLocalStores();
}

/**
 * Provides the stores for a test run: the stores in `PLAYLINE_TEST_STORES` (a `TestStores` object as JSON), containers
 * if `STORES` is `containers`, otherwise processes from infra/local. Stops the stores after the run.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { stores, template, stop } = await openRunStores(process.env);
  project.provide('stores', stores);
  project.provide('tableTemplate', template);
  return stop;
}

/**
 * Stops leftover processes from killed runs, and starts four empty stores as processes on free ports. Creates the
 * template database while Kafka and the registry start.
 * @throws Error with installation instructions
 */
export async function startLocalStores(): Promise<RunStores> {
  await sweepStacks(stackPathsOf, parentOfStacks());
  const directory = testStackFolder('run');
  const remove = () => rmSync(directory, { recursive: true, force: true });
  const report = (line: string) => console.error(`stores: ${line}`);
  // Assigned by `fillClickHouse` before `startStack` resolves.
  let template!: DatabaseTarget;
  const fillClickHouse = async (clickhouse: Stores['clickhouse']) => {
    template = await openTableTemplate({ clickhouse });
  };
  const options: StackOptions = { directory, services: [], report, fillClickHouse, isDisposable: true };
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

async function openTableTemplate({ clickhouse }: Pick<Stores, 'clickhouse'>): Promise<DatabaseTarget> {
  const target = { ...clickhouse, database: toDatabaseName() };
  await applySql(target);
  return target;
}
