import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { bareEnvironment } from '@playline/testkit';
import { expect, it } from 'vitest';

const SCRIPT = new URL('./test/index-large-block.ts', import.meta.url).pathname;
const LOGS = 300_000;
/** Heap limit. A million logs require 700 MiB. */
const HEAP_MIB = 256;

it('a block of 300,000 logs that no node returns in one response is published in batches within a memory limit', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [`--max-old-space-size=${HEAP_MIB}`, SCRIPT], {
    env: { ...bareEnvironment(), LOGS: String(LOGS) },
  });
  const { activities, largest } = JSON.parse(stdout);
  expect(activities).toBe(LOGS);
  expect(largest).toBeLessThanOrEqual(5_000);
}, 120_000);
