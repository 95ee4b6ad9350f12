import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import { type DatabaseTarget, runStatement } from './clickhouse-target.ts';
import type { TestStores } from './stores.ts';
import { startLocalStores } from './stores-local.ts';
import { openTableTemplate } from './table-template.ts';

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
