import assert from 'node:assert/strict';
import { BrokenPromise } from './world/report.ts';
import type { Difference, WriterRig } from './writer-rig.ts';

/** Long enough for a process on a machine with ten times too much load. */
export const WAIT_MAX_MS = 120_000;

/** Waits until everything is committed, and asserts that every record is one raw row and that `verify` agrees. */
export async function assertExact(rig: WriterRig): Promise<void> {
  await rig.caughtUp();
  assertSame(await rig.differences());
  await assertVerified(rig);
}

/** @throws BrokenPromise when raw rows and log differ */
export function assertSame(differences: readonly Difference[]): void {
  const sum = (name: 'lost' | 'doubled') => differences.reduce((total, each) => total + each[name], 0);
  if (differences.length > 0)
    throw new BrokenPromise(JSON.stringify(differences), { lost: sum('lost'), doubled: sum('doubled') });
}

/** Asserts that the operator's `verify` accounts for every record of the log, and that none was stored twice. */
export async function assertVerified(rig: WriterRig): Promise<void> {
  const { code, lines } = await rig.operate('verify', '--group', rig.group);
  assert.equal(code, 0, lines.join('\n'));
  assert.doesNotMatch(lines.join('\n'), /more than one raw row/);
}
