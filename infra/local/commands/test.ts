import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { installStores } from '../install-stores.ts';
import { findMissingTestParts, installMissingParts } from '../machine.ts';
import type { StackPaths } from '../paths.ts';
import { readJsonFile, writePrivateFile } from '../private-file.ts';
import { createProgress } from '../report.ts';
import { runHere, toolOf } from './run.ts';

interface VitestReport {
  numPassedTests?: number;
  numFailedTests?: number;
  testResults?: { status?: string; assertionResults?: unknown[] }[];
}

/** Counts tests. Failed checks, files whose tests did not run, and a run without tests count as failures. */
export function summarise(report: VitestReport | null, failedChecks: number) {
  const passed = report?.numPassedTests ?? 0;
  const failedTests = report?.numFailedTests ?? 0;
  const brokenFiles = (report?.testResults ?? []).filter(
    (file) => file.status === 'failed' && (file.assertionResults ?? []).length === 0,
  ).length;
  const noTest = passed + failedTests === 0 ? 1 : 0;
  return { passed, failed: failedTests + brokenFiles + failedChecks + noTest };
}

/** Installs missing programs, checks format, lint and types, then runs the tests except the long tests. */
export const test = (paths: StackPaths, filters: readonly string[]) => runTests(paths, filters, {});

/** Runs the checks and all tests, including the long tests. */
export const testAll = (paths: StackPaths, filters: readonly string[]) =>
  runTests(paths, filters, { PLAYLINE_TEST_ALL: '1' });

/** Runs docker-compose.yml and the tests of its containers. */
export async function testContainers(paths: StackPaths, filters: readonly string[]): Promise<number> {
  await installStores(paths, createProgress(console.error));
  const args = ['run', '--config', 'test/containers/vitest.config.ts', ...filters];
  return runHere(paths, toolOf(paths, 'vitest'), { args });
}

/** Injects a fault for every alert, which `testAll` does as well. */
export const testAlerts = (paths: StackPaths, filters: readonly string[]) =>
  runHere(paths, toolOf(paths, 'vitest'), {
    args: ['run', 'test/alerts', ...filters],
    env: { PLAYLINE_TEST_ALL: '1' },
  });

async function runTests(paths: StackPaths, filters: readonly string[], env: Record<string, string>): Promise<number> {
  const folder = join(paths.state, 'test');
  mkdirSync(folder, { recursive: true });
  const reportFile = join(folder, 'results.json');
  const summaryFile = join(folder, 'summary.json');
  for (const file of [reportFile, summaryFile]) rmSync(file, { force: true });

  const report = createProgress((line) => console.log(line));
  if (process.env.PLAYLINE_TEST_STORES === undefined) await installStores(paths, report);
  await installMissingParts(paths, report, findMissingTestParts);
  const checks = [
    { name: 'format and lint', program: toolOf(paths, 'biome'), args: ['ci', '.'] },
    { name: 'vocabulary', program: process.execPath, args: ['test/house/vocabulary.ts'] },
    // Incremental compilation takes 4 CPU-seconds instead of 31.
    {
      name: 'types',
      program: toolOf(paths, 'tsc'),
      args: ['-p', '.', '--incremental', '--tsBuildInfoFile', join(folder, 'types.json')],
    },
  ];
  let failedChecks = 0;
  for (const { name, program, args } of checks) {
    console.log(`\n${name}: ${args.join(' ')}`);
    if ((await runHere(paths, program, { args })) !== 0) failedChecks += 1;
  }
  const vitest = ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`, ...filters];
  const code = await runHere(paths, toolOf(paths, 'vitest'), { args: vitest, env });
  const summary = summarise(readJsonFile(reportFile) as VitestReport | null, failedChecks);
  // Vitest also fails a run for errors outside tests.
  if (code !== 0 && summary.failed === 0) summary.failed = 1;
  writePrivateFile(summaryFile, `${JSON.stringify(summary)}\n`);
  if (failedChecks > 0) console.error('checking format, lint, vocabulary or types failed; see above');
  return summary.failed === 0 ? 0 : 1;
}
