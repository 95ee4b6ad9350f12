import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { metricsOf, sumOf } from '../world/metrics.ts';
import type { ServiceProcess } from '../world/service-process.ts';
import type { Scenario } from '../world/trial.ts';
import { watchOutage } from './outage.ts';

const MIB = 1024 * 1024;
/** The gateway's default bound on bytes of unacknowledged batches. */
const BYTES_IN_FLIGHT_MAX = 16 * MIB;
/** Bodies that were read or refused are garbage, which V8 collects after this much memory outside of its heap. */
const UNCOLLECTED_MAX = 64 * MIB;
/** A collection runs concurrently. Until it has ended, a quarter more may arrive. */
const WHILE_COLLECTING_MAX = UNCOLLECTED_MAX / 4;
/** Without the heap, which keeps its size from the load before until after the outage. */
const GROWTH_MAX_BYTES = BYTES_IN_FLIGHT_MAX + UNCOLLECTED_MAX + WHILE_COLLECTING_MAX;
const BATCH = { batchMax: 100, fillMax: 10_500, restMaxMs: 20 };
/** Number of clients whose batches together are twice the bound. */
const CLIENTS = 96;
const OUTAGE_MS = 20_000;

async function watchMemory(gateway: ServiceProcess, forMs: number): Promise<{ resident: number; held: number }> {
  const most = { resident: 0, held: 0 };
  for (const end = Date.now() + forMs; Date.now() < end; await delay(250)) {
    most.resident = Math.max(most.resident, gateway.residentBytes());
    most.held = Math.max(most.held, sumOf(await metricsOf(gateway), 'playline_gateway_in_flight_bytes'));
  }
  return most;
}

const toMib = (bytes: number) => Math.round(bytes / MIB);

export const memoryBounded: Scenario = {
  fault: 1,
  title: 'a gateway that cannot publish for 20 s under load stays within the memory that its limits explain',
  tried: 'broker frozen for 20 s under heavy load, memory watched',
  run: async (trial) => {
    const { world, ledger } = trial;
    const gateway = await trial.start('gateway', { BYTES_IN_FLIGHT_MAX: String(BYTES_IN_FLIGHT_MAX) });
    // Compiles the gateway's code, and gives its heap the size for such batches.
    const warm = trial.openTraffic([gateway], { ...BATCH, clients: 3 });
    await warm.flows(100);
    const before = gateway.residentBytes();
    await world.wires.kafka.set('freeze');
    const outage = watchOutage(gateway, ledger);
    const traffic = trial.openTraffic([gateway], { ...BATCH, clients: CLIENTS });
    const most = await watchMemory(gateway, OUTAGE_MS);
    const reached = outage.check();
    await world.wires.kafka.set('open');
    await traffic.flows(20);
    await Promise.all([warm.close(), traffic.close()]);
    const grown = most.resident - before;
    assert.ok(grown <= GROWTH_MAX_BYTES, `the gateway grew by ${toMib(grown)} MiB, from ${toMib(before)}`);
    return {
      ...reached,
      // Without refusals the bound was never reached, and only the number of clients limited memory.
      'for lack of memory': ledger.attempts.filter(({ status }) => status === 429).length,
      'held MiB': toMib(most.held),
      'grown MiB': toMib(grown),
      'resident MiB': toMib(most.resident),
    };
  },
};
