import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import { runStatement } from './clickhouse-target.ts';
import type { Stores } from './stores.ts';
import { startLocalStores } from './stores-local.ts';
import { openTableTemplate } from './table-template.ts';

/** An engine that takes longer to say its version is stuck or far away. */
const ENGINE_ANSWER_MS = 2000;

async function hasContainerEngine(): Promise<boolean> {
  try {
    await promisify(execFile)('docker', ['version', '--format', '{{.Server.Version}}'], { timeout: ENGINE_ANSWER_MS });
    return true;
  } catch {
    return false;
  }
}

async function startContainerStores() {
  // Loaded only where it is needed: its client takes longer to load than Redis takes to start.
  const { startContainers } = await import('./containers.ts');
  return startContainers();
}

/** Tells every test the addresses of the stores, and a database with every table to copy. @returns what drops it */
async function provideStores(project: TestProject, stores: Stores): Promise<() => Promise<void>> {
  project.provide('stores', stores);
  const template = await openTableTemplate(stores);
  project.provide('tableTemplate', template);
  return async () => void (await runStatement(template, `DROP DATABASE ${template.database} SYNC`));
}

/**
 * Gives the test run its stores: those of `PLAYLINE_TEST_STORES` (JSON, the shape of `Stores`), else containers where a
 * container engine answers, else the stores of infra/local as processes of this machine. They end with the run.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env.PLAYLINE_TEST_STORES;
  if (given !== undefined && given !== '') return provideStores(project, JSON.parse(given));
  const { stores, stop } = (await hasContainerEngine()) ? await startContainerStores() : await startLocalStores();
  try {
    await provideStores(project, stores);
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}
