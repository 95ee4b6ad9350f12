import { setTimeout as delay } from 'node:timers/promises';
import type { Engine } from '../clickhouse.ts';
import type { Bench } from '../figure.ts';

/** Often enough for a p99 of half a minute, and less than the engine can answer. */
const ASKED_EVERY_MS = 100;

/** Of one event in the last thirty days: how often, and by how many, a day. */
const question = (environmentId: string) =>
  `SELECT toDate(event_time) AS day, count(), uniq(identity_key) FROM events FINAL
   WHERE environment_id = '${environmentId}' AND event_name = 'event_7' AND event_time >= now() - INTERVAL 30 DAY
   GROUP BY day ORDER BY day FORMAT TSV
   SETTINGS do_not_merge_across_partitions_select_final = 1`;

/** Somebody who asks the same again and again. `close` says how long each answer took, in milliseconds. */
export interface Analyst {
  close(): Promise<number[]>;
}

/** Begins to ask. An answer that takes long is followed by the next question at once. */
export function openAnalyst(engine: Engine, { environmentId }: Bench): Analyst {
  const latenciesMs: number[] = [];
  let isOver = false;
  const asking = (async () => {
    while (!isOver) {
      const startMs = performance.now();
      await engine.ask(question(environmentId));
      latenciesMs.push(performance.now() - startMs);
      await delay(Math.max(0, startMs + ASKED_EVERY_MS - performance.now()));
    }
  })();
  // Told by `close`, and no fault that nobody waits for until then.
  asking.catch(() => {});
  return {
    close: async () => {
      isOver = true;
      await asking;
      return latenciesMs;
    },
  };
}
