import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { metricsOf, sumOf } from '../world/metrics.ts';
import { post } from '../world/post.ts';
import { type Effects, toSeconds } from '../world/report.ts';
import { isStopped, type ServiceProcess } from '../world/service-process.ts';
import type { Ledger, Scenario, Trial } from '../world/trial.ts';
import { waitFor } from '../world/wait.ts';

/** After the brokers fail, the gateway must refuse a request within this time. */
const FIRST_REFUSAL_MAX_MS = 3_000;
const POLL_INTERVAL_MS = 100;

/** Measures the maximum scheduling delay of the machine, with requests to an idle endpoint and a timer. */
function watchDelay({ adminUrl }: ServiceProcess) {
  let hasEnded = false;
  const errors: unknown[] = [];
  let delayMaxMs = 0;
  let roundBeganAt = performance.now();
  const lateMs = () => performance.now() - roundBeganAt - POLL_INTERVAL_MS;
  const watch = async () => {
    while (!hasEnded) {
      roundBeganAt = performance.now();
      // Opens a new connection each time, because the server may close an idle one while this process is suspended.
      const response = await fetch(`${adminUrl}/livez`, { headers: { connection: 'close' } });
      await response.arrayBuffer();
      await delay(POLL_INTERVAL_MS);
      delayMaxMs = Math.max(delayMaxMs, lateMs());
    }
  };
  void watch().catch((error: unknown) => void errors.push(error));
  return {
    delayMaxMs: () => Math.max(delayMaxMs, lateMs()),
    end: () => {
      hasEnded = true;
      if (errors.length > 0) throw new Error(`the gateway did not respond to /livez (${errors})`);
    },
  };
}

/**
 * Watches requests that start after this call, which no broker can acknowledge.
 * @param ledger the ledger of the traffic
 */
function watchOutage(gateway: ServiceProcess, ledger: Ledger) {
  const beganAt = performance.now();
  const machine = watchDelay(gateway);
  const refusals = () => ledger.attempts.filter(({ endedAt, status }) => endedAt > beganAt && status !== 200);
  return {
    refused: async () => void (await waitFor('a request is refused', () => refusals().length > 0)),
    /** Call before the broker can respond again. @throws AssertionError if the gateway violated a guarantee */
    check: (): Effects => {
      const lateMs = machine.delayMaxMs();
      assert.ok(gateway.isAlive, 'the gateway must not exit');
      machine.end();
      const attempts = ledger.attempts.filter((attempt) => attempt.beganAt > beganAt);
      const statuses = [...new Set(attempts.map(({ status }) => status))].sort();
      const areExpected = statuses.every((status) => status === 500 || status === 429);
      assert.ok(areExpected, `responses without a broker had the statuses ${statuses}`);
      const firstMs = Math.round(Math.min(...refusals().map(({ endedAt }) => endedAt)) - beganAt);
      const allowedMs = Math.round(FIRST_REFUSAL_MAX_MS + lateMs);
      assert.ok(firstMs <= allowedMs, `the first refusal arrived after ${firstMs} ms; the limit is ${allowedMs} ms`);
      const outageS = toSeconds(performance.now() - beganAt);
      return { 'requests refused': refusals().length, 'first refusal ms': firstMs, 'broker unavailable s': outageS };
    },
  };
}

const EXTRA_OUTAGE_MAX_MS = 3_000;

async function expectRecovery(gateway: ServiceProcess): Promise<void> {
  await waitFor('the gateway is ready again', () => gateway.isReady());
  assert.ok(gateway.isAlive, 'the gateway recovers without a restart');
}

export const brokerAbsent: Scenario = {
  fault: 1,
  tried: 'gateway started without a broker',
  run: async (trial) => {
    const { world, random, ledger } = trial;
    await world.proxies.kafka.set(random.pick(['refuse', 'freeze'] as const));
    const gateway = await trial.launch('gateway');
    await waitFor('the gateway is alive', async () => (await fetch(`${gateway.adminUrl}/livez`)).ok);
    await waitFor(
      'the gateway responds',
      async () => (await post({ url: gateway.url, key: trial.key, body: '' })).status > 0,
    );
    assert.equal(await gateway.isReady(), false, 'a gateway without a broker is not ready');
    const outage = watchOutage(gateway, ledger);
    const traffic = trial.openTraffic([gateway]);
    await outage.refused();
    await delay(random.integer(0, EXTRA_OUTAGE_MAX_MS));
    const effects = outage.check();
    assert.equal(ledger.acknowledged, 0, 'number of messages acknowledged without a broker');
    await world.proxies.kafka.set('open');
    await traffic.awaitBatches(10);
    await expectRecovery(gateway);
    await traffic.close();
    return effects;
  },
};

async function tryOutage(trial: Trial, stop: () => Promise<void>, restore: () => Promise<void>): Promise<Effects> {
  const { random, ledger } = trial;
  const gateway = await trial.start('gateway');
  const traffic = trial.openTraffic([gateway]);
  await traffic.awaitBatches(random.integer(5, 30));
  let effects: Effects;
  try {
    await stop();
    const outage = watchOutage(gateway, ledger);
    await outage.refused();
    await delay(random.integer(0, EXTRA_OUTAGE_MAX_MS));
    effects = outage.check();
  } finally {
    await restore();
  }
  await traffic.awaitBatches(10);
  await expectRecovery(gateway);
  await traffic.close();
  return effects;
}

export const brokerStopped: Scenario = {
  fault: 1,
  tried: 'broker SIGSTOP under load, SIGCONT',
  run: async (trial) => {
    const broker = await trial.world.storePid('kafka');
    const stop = async () => {
      process.kill(broker, 'SIGSTOP');
      await waitFor('the broker is stopped', () => isStopped(broker));
    };
    return await tryOutage(trial, stop, async () => void process.kill(broker, 'SIGCONT'));
  },
};

export const brokerKilled: Scenario = {
  fault: 1,
  title: 'no acknowledged message is lost when the broker is killed under load and restarts',
  tried: 'broker SIGKILL under load, restarted',
  run: async (trial) => {
    const { stack, proxies } = trial.world;
    const broker = await trial.world.storePid('kafka');
    // The stack restarts the broker immediately; the proxy makes the outage last longer.
    const kill = async () => {
      await proxies.kafka.set(trial.random.pick(['refuse', 'freeze'] as const));
      process.kill(broker, 'SIGKILL');
      await waitFor('the broker has exited', () => stack.file.processes.kafka !== broker);
    };
    return { kills: 1, ...(await tryOutage(trial, kill, () => proxies.kafka.set('open'))) };
  },
};

const MIB = 1024 * 1024;
/** The gateway's default limit on bytes in flight. */
const BYTES_IN_FLIGHT_MAX = 16 * MIB;
/** V8 starts a collection after this many bytes of garbage outside of its heap, such as request bodies. */
const EXTERNAL_GARBAGE_MAX = 64 * MIB;
/** Garbage that may accumulate while V8 collects concurrently. */
const CONCURRENT_GARBAGE_MAX = EXTERNAL_GARBAGE_MAX / 4;
/** Excludes the heap, which was measured under load before the outage. */
const GROWTH_MAX_BYTES = BYTES_IN_FLIGHT_MAX + EXTERNAL_GARBAGE_MAX + CONCURRENT_GARBAGE_MAX;
const BATCH = { batchMax: 100, fillerMax: 10_500, pauseMaxMs: 20 };
/** Enough clients for twice the limit on bytes in flight. */
const CLIENTS = 96;
const OUTAGE_MS = 20_000;

async function watchMemory(gateway: ServiceProcess, forMs: number): Promise<{ resident: number; inFlight: number }> {
  const peak = { resident: 0, inFlight: 0 };
  for (const end = Date.now() + forMs; Date.now() < end; await delay(250)) {
    peak.resident = Math.max(peak.resident, gateway.residentBytes());
    peak.inFlight = Math.max(peak.inFlight, sumOf(await metricsOf(gateway), 'playline_gateway_in_flight_bytes'));
  }
  return peak;
}

const toMib = (bytes: number) => Math.round(bytes / MIB);

export const memoryBounded: Scenario = {
  fault: 1,
  tried: 'broker frozen for 20 s under heavy load, memory measured',
  run: async (trial) => {
    const { world, ledger } = trial;
    const gateway = await trial.start('gateway', { BYTES_IN_FLIGHT_MAX: String(BYTES_IN_FLIGHT_MAX) });
    // Warm-up: compiles the code and grows the heap.
    const warmUp = trial.openTraffic([gateway], { ...BATCH, clients: 3 });
    await warmUp.awaitBatches(100);
    const before = gateway.residentBytes();
    await world.proxies.kafka.set('freeze');
    const outage = watchOutage(gateway, ledger);
    const traffic = trial.openTraffic([gateway], { ...BATCH, clients: CLIENTS });
    const peak = await watchMemory(gateway, OUTAGE_MS);
    const effects = outage.check();
    await world.proxies.kafka.set('open');
    await traffic.awaitBatches(20);
    await Promise.all([warmUp.close(), traffic.close()]);
    const growth = peak.resident - before;
    assert.ok(growth <= GROWTH_MAX_BYTES, `the gateway grew by ${toMib(growth)} MiB from ${toMib(before)} MiB`);
    return {
      ...effects,
      'requests refused at the memory limit': ledger.attempts.filter(({ status }) => status === 429).length,
      'bytes in flight MiB': toMib(peak.inFlight),
      'memory growth MiB': toMib(growth),
      'resident MiB': toMib(peak.resident),
    };
  },
};
