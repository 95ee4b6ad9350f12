import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { ServiceProcess } from '../world/service-process.ts';
import type { Scenario } from '../world/trial.ts';
import { watchOutage } from './outage.ts';

const MIB = 1024 * 1024;
/** The least that the gateway's setting allows is 2 MiB; this is its default. */
const BYTES_IN_FLIGHT_MAX = 16 * MIB;
const GROWTH_MAX_BYTES = 8 * BYTES_IN_FLIGHT_MAX;
/** Enough batches of a hundred messages to fill the room several times over. */
const LOAD = { clients: 48, batchMax: 100, restMaxMs: 20 };
const OUTAGE_MS = 20_000;
const LOOK_EVERY_MS = 250;

/** The most that a process holds while it is watched. */
async function watchMemory(gateway: ServiceProcess, forMs: number): Promise<number> {
  let most = 0;
  for (const end = Date.now() + forMs; Date.now() < end; await delay(LOOK_EVERY_MS)) {
    most = Math.max(most, gateway.residentBytes());
    if (process.env.FAULT_TIMES)
      console.error(
        `     ${Math.round((end - Date.now()) / 1000)} rss ${Math.round(gateway.residentBytes() / MIB)} MiB`,
      );
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
    console.error(`grown ${grownMib} from ${before / MIB}`);
    assert.ok(
      grownMib * MIB <= GROWTH_MAX_BYTES,
      `the gateway grew by ${grownMib} MiB, from ${Math.round(before / MIB)}`,
    );
  },
};
