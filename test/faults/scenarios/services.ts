import { setTimeout as delay } from 'node:timers/promises';
import { query } from '../world/clickhouse.ts';
import { metricsOf, sumOf } from '../world/metrics.ts';
import { tally } from '../world/report.ts';
import type { ServiceName, ServiceProcess } from '../world/service-process.ts';
import type { Scenario, Trial } from '../world/trial.ts';
import { waitFor } from '../world/wait.ts';

export const partitionsMove: Scenario = {
  fault: 11,
  title: 'every record has one row if linkers and writers join and leave their groups under load',
  tried: 'writers and linkers join, and leave after SIGTERM or SIGKILL',
  services: { linkers: 2, writers: 2 },
  run: async (trial) => {
    const { random } = trial;
    const gateways = [await trial.start('gateway'), await trial.start('gateway')];
    const running = [...trial.services];
    const traffic = trial.openTraffic(gateways, { pauseMaxMs: 15 });
    const moves: string[] = [];
    const leave = async (child: ServiceProcess) => {
      running.splice(running.indexOf(child), 1);
      const signal = random.pick(['SIGTERM', 'SIGKILL'] as const);
      moves.push(signal);
      child.signal(signal);
      // As in a deployment, the process may still be draining when the next process starts.
      if (random.chance(0.5)) await child.exited;
    };
    for (let move = random.integer(3, 5); move > 0; move--) {
      await traffic.awaitBatches(random.integer(5, 25));
      await delay(random.integer(0, 400));
      const service: ServiceName = random.pick(['identity-linker', 'event-writer']);
      const members = running.filter((child) => child.service === service);
      // At least one process per service keeps running, so that partitions move while records are processed.
      const joins = members.length <= 1 || (members.length < 3 && random.chance(0.5));
      if (!joins) await leave(random.pick(members));
      else {
        moves.push('joined');
        running.push(await trial.launch(service));
      }
    }
    // All processes have joined before the traffic ends, so every rebalance happens under load.
    await Promise.all(running.map((child) => child.whenReady()));
    await traffic.awaitBatches(10);
    await traffic.close();
    return tally(moves);
  },
};

async function countRetries({ services }: Trial): Promise<number> {
  const writers = services.filter(({ service }) => service === 'event-writer');
  const texts = await Promise.all(writers.map(metricsOf));
  return texts.reduce((sum, text) => sum + sumOf(text, 'playline_stream_retries_total', 'step="write"'), 0);
}

export const engineKilled: Scenario = {
  fault: 5,
  tried: 'ClickHouse SIGKILL under load, restarted',
  services: { linkers: 1, writers: 2 },
  run: async (trial) => {
    const { world, random } = trial;
    const { engine } = world.deployment;
    // Prevents merges, which would hide duplicate rows. Unlike SYSTEM STOP MERGES, this survives a restart.
    await query(engine, 'ALTER TABLE events MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1');
    const traffic = trial.openTraffic([await trial.start('gateway')], { pauseMaxMs: 10 });
    const before = await countRetries(trial);
    const kills = random.integer(1, 2);
    for (let kill = 0; kill < kills; kill++) {
      await traffic.awaitBatches(random.integer(10, 30));
      await delay(random.integer(0, 300));
      const pid = await world.storePid('clickhouse');
      process.kill(pid, 'SIGKILL');
      await traffic.awaitBatches(random.integer(5, 10));
      const isRunning = async () =>
        (await world.storePid('clickhouse')) !== pid && (await query(engine, 'SELECT 1')) !== '';
      await waitFor('ClickHouse is running again', isRunning);
    }
    await traffic.awaitBatches(10);
    await traffic.close();
    await query(engine, 'ALTER TABLE events RESET SETTING max_bytes_to_merge_at_max_space_in_pool');
    await query(engine, 'SYSTEM STOP MERGES events');
    return { kills, 'inserts retried': (await countRetries(trial)) - before };
  },
};
