import { setTimeout as delay } from 'node:timers/promises';
import type { Engine } from '../clickhouse.ts';
import type { Bench } from '../figure.ts';

/** Often enough for a p99 within half a minute, and below what ClickHouse can answer. */
const ASKED_EVERY_MS = 100;

/** Counts one event per day, and its users, for the last thirty days. */
const question = (environmentId: string) =>
  `SELECT toDate(event_time) AS day, count(), uniq(identity_key) FROM events FINAL
   WHERE environment_id = '${environmentId}' AND event_name = 'event_7' AND event_time >= now() - INTERVAL 30 DAY
   GROUP BY day ORDER BY day FORMAT TSV
   SETTINGS do_not_merge_across_partitions_select_final = 1`;

/** Sends the same query again and again. `close` returns the duration of each answer in milliseconds. */
export interface Analyst {
  close(): Promise<number[]>;
}

/** Begins to send queries. After a slow answer the next query follows at once. */
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
  // `close` reports the error. Until then it must not count as an unhandled rejection.
  asking.catch(() => {});
  return {
    close: async () => {
      isOver = true;
      await asking;
      return latenciesMs;
    },
  };
}
