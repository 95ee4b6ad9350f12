import { type ErasureReceipt, newSearchId } from '@playline/erasure';
import { until } from '@playline/testkit';
import { expect } from 'vitest';
import { awaitReceipt, ENVIRONMENT_ID, type ErasureRig } from './rig.ts';
import { keyNeedles } from './traces/needle.ts';
import { findInRedis } from './traces/redis.ts';
import { findForbidden } from './traces/registry.ts';

/** Waits for the receipt and asserts that neither rows nor a hold remain. */
export async function expectErased(
  rig: ErasureRig,
  erasureId: Buffer,
  keys: readonly Buffer[],
): Promise<ErasureReceipt> {
  const receipt = await awaitReceipt(rig, erasureId);
  expect(Object.values(receipt.verified).filter((count) => count !== 0)).toEqual([]);
  await expectNoRows(rig, keys, receipt.cutoffAt);
  await expectNoHold(rig, erasureId);
  return receipt;
}

export async function expectNoRows(rig: ErasureRig, keys: readonly Buffer[], cutoffMs: number): Promise<void> {
  expect(await survivorsOf(rig, keys, cutoffMs)).toEqual([]);
}

/** Asserts that Redis contains only data of the identities that the registry allows. */
export async function expectNoDataInRedis(rig: ErasureRig, keys: readonly Buffer[]): Promise<void> {
  const needles = keys.flatMap((key, at) => keyNeedles(`key ${at}`, key));
  expect(findForbidden(await findInRedis(rig.redis, needles))).toEqual([]);
}

export async function survivorsOf({ rows }: ErasureRig, keys: readonly Buffer[], cutoffMs: number) {
  const batch = newSearchId(Date.now());
  await rows.putTargets(
    batch,
    keys.map((key) => ({ environmentId: ENVIRONMENT_ID, key, cutoffMs })),
  );
  try {
    return (await rows.findSurvivors(batch)).map(({ table, column, as, rows: count }) => ({
      table,
      column,
      as,
      rows: count,
    }));
  } finally {
    await rows.dropTargets(batch);
  }
}

export const isHeld = async ({ people }: ErasureRig, erasureId: Buffer): Promise<boolean> =>
  (await people.guards.listHolds(ENVIRONMENT_ID)).some((hold) => hold.erasureId.equals(erasureId));

/** Waits until the erasure's hold is released, then asserts that no holds remain. */
export async function expectNoHold(rig: ErasureRig, erasureId: Buffer): Promise<void> {
  await until('the hold is released', async () => !(await isHeld(rig, erasureId)));
  for (const family of ['h', 'hl', 'hk']) expect(await rig.redis.exists(`${family}:{${ENVIRONMENT_ID}}`)).toBe(0);
}
