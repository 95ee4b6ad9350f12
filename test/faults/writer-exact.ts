import assert from 'node:assert/strict';
import { BrokenPromise } from './world/report.ts';
import type { Difference, WriterRig } from './writer-rig.ts';

/** Long enough for a process on a machine with ten times too much load. */
export const WAIT_MAX_MS = 120_000;

/**
 * Waits until the writers have committed everything. Then asserts that every record is one raw row and that the
 * operator's verifier agrees.
 */
export async function assertExact(rig: WriterRig): Promise<void> {
  await rig.caughtUp(WAIT_MAX_MS);
  assertSame(await rig.differences());
  await assertVerified(rig);
}

/** @throws BrokenPromise when raw rows and log differ */
export function assertSame(differences: readonly Difference[]): void {
  const sum = (read: (difference: Difference) => number) => differences.reduce((total, each) => total + read(each), 0);
  const [lost, doubled] = [sum((each) => each.lost), sum((each) => each.doubled)];
  if (differences.length > 0) throw new BrokenPromise(JSON.stringify(differences), { lost, doubled });
}

/** Asserts that the operator's `verify` accounts for every record of the log, and that none was stored twice. */
export async function assertVerified(rig: WriterRig): Promise<void> {
  const { code, lines } = await rig.operate('verify', '--group', rig.group);
  assert.equal(code, 0, lines.join('\n'));
  assert.doesNotMatch(lines.join('\n'), /more than one raw row/);
}
