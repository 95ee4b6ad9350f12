import assert from 'node:assert/strict';
import type { WriterRig } from './writer-rig.ts';

/** Long enough for a process on a machine that has ten times as much to do as it can. */
export const WAIT_MAX_MS = 120_000;

/**
 * Waits until the writers have committed all there is, and asserts that every record is one raw row and that the
 * operator's verifier agrees.
 */
export async function assertExact(rig: WriterRig): Promise<void> {
  await rig.caughtUp(WAIT_MAX_MS);
  assert.deepEqual(await rig.differences(), []);
  await assertVerified(rig);
}

/** Asserts that the operator's `verify` accounts for every record of the log. */
export async function assertVerified(rig: WriterRig): Promise<void> {
  const { code, lines } = await rig.operate('verify', '--group', rig.group);
  assert.equal(code, 0, lines.join('\n'));
}
