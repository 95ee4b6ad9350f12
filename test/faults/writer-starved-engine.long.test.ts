import { testStores } from '@playline/testkit';
import { describe, it } from 'vitest';
import { type OwnEngineOptions, openOwnEngine } from './writer-own-engine.ts';
import { openWriterRig } from './writer-rig.ts';
import {
  ENGINE_MEMORY_BYTES,
  exhaustMemory,
  fillDisk,
  losePart,
  mountSmallDisk,
  refuseLargeBlocks,
  rotatePassword,
  type StarvedRig,
  stopEngineGracefully,
} from './writer-starved-engine.ts';

const SESSION_TIMEOUT_MS = 2_000;
const SEED_MAX_MS = 400_000;

/** A separate ClickHouse and rig for each test, because faults of the server would affect the next test. */
async function onOwnEngine(options: OwnEngineOptions, work: (rig: StarvedRig) => Promise<unknown>): Promise<void> {
  const engine = await openOwnEngine(options);
  try {
    const stores = { ...testStores(), clickhouse: engine.address };
    const rig = await openWriterRig(stores, { partitions: 2, sessionTimeoutMs: SESSION_TIMEOUT_MS });
    try {
      await work({ rig, engine });
    } finally {
      await rig.close();
    }
  } finally {
    await engine.close();
  }
}

describe('a writer recovers without help and stores every record once', () => {
  it(
    'after ClickHouse was stopped under load and started again',
    () => onOwnEngine({}, (rig) => stopEngineGracefully(rig, 1)),
    SEED_MAX_MS,
  );

  it(
    'after analysts have used all memory of the server',
    () => onOwnEngine({ memoryMaxBytes: ENGINE_MEMORY_BYTES }, (rig) => exhaustMemory(rig, 1)),
    SEED_MAX_MS,
  );

  it(
    'when its blocks need more memory than an insert may use',
    () => onOwnEngine({}, ({ rig }) => refuseLargeBlocks(rig, 1)),
    SEED_MAX_MS,
  );

  it(
    'after the disk was full',
    () => onOwnEngine({ prepareData: mountSmallDisk }, (rig) => fillDisk(rig, 1)),
    SEED_MAX_MS,
  );

  it(
    'when ClickHouse knows the token of an insert but has lost its rows',
    () => onOwnEngine({}, (rig) => losePart(rig, 1)),
    SEED_MAX_MS,
  );

  it(
    'after its password was changed and changed back',
    () => onOwnEngine({}, (rig) => rotatePassword(rig, 1)),
    SEED_MAX_MS,
  );
});
