import { setTimeout as delay } from 'node:timers/promises';
import { query } from './world/clickhouse.ts';
import { metricsOf, sumOf } from './world/metrics.ts';
import type { Scenario, Trial } from './world/trial.ts';
import { waitFor } from './world/wait.ts';

/** Number of inserts that the writers of the crew have repeated since they started. */
async function countRepeated({ crew }: Trial): Promise<number> {
  const writers = crew.filter(({ service }) => service === 'event-writer');
  const texts = await Promise.all(writers.map(metricsOf));
  return texts.reduce((sum, text) => sum + sumOf(text, 'playline_stream_retries_total', 'step="write"'), 0);
}

export const engineKilled: Scenario = {
  fault: 5,
  title: 'ClickHouse has every record once after it was killed during inserts and restarted',
  tried: 'ClickHouse SIGKILL under load, started again',
  crew: { linkers: 1, writers: 2 },
  run: async (trial) => {
    const { world, random } = trial;
    const { engine } = world.deployment;
    // Merges would fold rows that were written twice. SYSTEM STOP MERGES is lost with the process.
    await query(engine, 'ALTER TABLE events MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1');
    const traffic = trial.openTraffic([await trial.start('gateway')], { restMaxMs: 10 });
    const before = await countRepeated(trial);
    const kills = random.integer(1, 2);
    for (let kill = 0; kill < kills; kill++) {
      await traffic.flows(random.integer(10, 30));
      await delay(random.integer(0, 300));
      const pid = await world.storePid('clickhouse');
      process.kill(pid, 'SIGKILL');
      await traffic.flows(random.integer(5, 10));
      const isBack = async () =>
        (await world.storePid('clickhouse')) !== pid && (await query(engine, 'SELECT 1')) !== '';
      await waitFor('the engine is back', isBack);
    }
    await traffic.flows(10);
    await traffic.close();
    await query(engine, 'ALTER TABLE events RESET SETTING max_bytes_to_merge_at_max_space_in_pool');
    await query(engine, 'SYSTEM STOP MERGES events');
    return { kills, 'inserts repeated': (await countRepeated(trial)) - before };
  },
};
