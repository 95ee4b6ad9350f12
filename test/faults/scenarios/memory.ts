import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { ServiceProcess } from '../world/service-process.ts';
import type { Scenario } from '../world/trial.ts';
import { watchOutage } from './outage.ts';

const MIB = 1024 * 1024;
/** The gateway's default: what it holds of batches that are not acknowledged. */
const BYTES_IN_FLIGHT_MAX = 16 * MIB;
/** Bodies that were read and are garbage: the engine collects buffers outside of its heap after this much of new ones. */
const BUFFERS_UNCOLLECTED_MAX = 64 * MIB;
/**
 * The young part of the heap grows to three semi-spaces under load, and does not shrink while the load lasts. A gateway
 * runs with `--max-semi-space-size=8`, see `SERVICES` of infra/local.
 */
const YOUNG_HEAP_MAX = 3 * 8 * MIB;
/** Growth comes in teeth that end with each collection. What leaked would pass every bound. */
const GROWTH_MAX_BYTES = BYTES_IN_FLIGHT_MAX + BUFFERS_UNCOLLECTED_MAX + YOUNG_HEAP_MAX;
/** Enough batches of a hundred messages to fill the room several times over. */
const LOAD = { clients: 48, batchMax: 100, restMaxMs: 20 };
const OUTAGE_MS = 20_000;
const LOOK_EVERY_MS = 250;

/** The most that a process holds while it is watched. */
async function watchMemory(gateway: ServiceProcess, forMs: number): Promise<number> {
  let most = 0;
  for (const end = Date.now() + forMs; Date.now() < end; await delay(LOOK_EVERY_MS)) {
    most = Math.max(most, gateway.residentBytes());
  }
  return most;
}

export const memoryBounded: Scenario = {
  fault: 1,
  title: 'a gateway that cannot publish for 20 s under load holds no more memory than its bound on bytes explains',
  tried: 'broker frozen for 20 s under heavy load, memory watched',
  run: async (trial) => {
    const { world, ledger } = trial;
    const gateway = await trial.start('gateway', { BYTES_IN_FLIGHT_MAX: String(BYTES_IN_FLIGHT_MAX) });
    const traffic = trial.openTraffic([gateway], LOAD);
    await traffic.flows(200);
    const before = gateway.residentBytes();
    await world.wires.kafka.set('freeze');
    const outage = watchOutage(gateway, ledger);
    const most = await watchMemory(gateway, OUTAGE_MS);
    outage.check();
    await world.wires.kafka.set('open');
    await traffic.flows(20);
    await traffic.close();
    const grownMib = Math.round((most - before) / MIB);
    assert.ok(
      grownMib * MIB <= GROWTH_MAX_BYTES,
      `the gateway grew by ${grownMib} MiB, from ${Math.round(before / MIB)}`,
    );
  },
};
