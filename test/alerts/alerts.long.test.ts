import { setTimeout as delay } from 'node:timers/promises';
import { DEPLOYMENT_RULES } from '@playline/alerts';
import { SERVICES } from '@playline/infra/local';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readQueries } from './dashboards.ts';
import { FAULTS } from './faults.ts';
import { openWorld, type World } from './world.ts';

const FIRE_MAX_MS = 90_000;
const CLEAR_MAX_MS = 120_000;
const QUIET_MS = 30 * 60_000;
/** The longest preparation waits for a search that starts five minutes after the eraser. */
const FAULT_MAX_MS = 20 * 60_000;

let world: World;
const times: { rule: string; fault: string; firedS: number; clearedS: number }[] = [];

beforeAll(async () => {
  world = await openWorld();
  await world.requestMint();
}, 300_000);
afterAll(async () => {
  console.table(times);
  await world?.close();
}, 120_000);

const firing = async () => new Set((await world.monitoring.firing()).map(({ alertname = '' }) => alertname));
const secondsSince = (startMs: number) => Math.round((performance.now() - startMs) / 1000);

/** Waits for every rule to fire or to clear. @returns the seconds per rule */
async function awaitRules(rules: readonly string[], { isFiring }: { isFiring: boolean }, maxMs: number) {
  const startMs = performance.now();
  const seconds = new Map<string, number>();
  await until(
    `${rules.join(', ')} ${isFiring ? 'fire' : 'clear'}`,
    async () => {
      const names = await firing();
      for (const rule of rules)
        if (names.has(rule) === isFiring && !seconds.has(rule)) seconds.set(rule, secondsSince(startMs));
      return seconds.size === rules.length;
    },
    maxMs,
  ).catch((error) => {
    throw new Error(`${error.message}; in time: ${[...seconds.keys()].join(', ')}`);
  });
  return seconds;
}

const untilQuiet = () => until('no rule fires', async () => (await firing()).size === 0, 5 * 60_000);

it(
  'no rule fires in half an hour with traffic and a rolling restart',
  async () => {
    await until('Prometheus has scraped all services', async () => {
      const up = (await world.monitoring.query('up == 1')) as unknown[];
      return up.length >= SERVICES.length + 2;
    });
    const fired = new Set<string>();
    const watch = setInterval(
      () => void world.monitoring.firing().then((alerts) => {
        for (const labels of alerts) fired.add(JSON.stringify(labels));
      }),
      5_000,
    );
    try {
      await delay(QUIET_MS / 2);
      for (const { name } of SERVICES) await world.replace(name, 'SIGTERM');
      await delay(QUIET_MS / 2);
    } finally {
      clearInterval(watch);
    }
    expect([...fired]).toEqual([]);
  },
  QUIET_MS + FAULT_MAX_MS,
);

it('every query of the dashboards for operations returns series', async () => {
  const empty: string[] = [];
  for (const { dashboard, panel, query } of readQueries())
    if ((await world.monitoring.query(query)).length === 0) empty.push(`${dashboard}: ${panel}: ${query}`);
  expect(empty).toEqual([]);
});

it('every rule has a fault', () => {
  const tested = new Set(FAULTS.flatMap(({ rules }) => rules));
  expect(DEPLOYMENT_RULES.map(({ name }) => name).filter((name) => !tested.has(name))).toEqual([]);
});

it.each(FAULTS)(
  'if $what, the rules $rules fire within 90 s, and clear within 120 s of the repair',
  async ({ what, rules, prepare, inject, repair }) => {
    await untilQuiet();
    await prepare?.(world);
    let fired: Map<string, number>;
    try {
      const firing = awaitRules(rules, { isFiring: true }, FIRE_MAX_MS);
      [fired] = await Promise.all([firing, inject(world)]);
    } finally {
      await repair(world);
    }
    const cleared = await awaitRules(rules, { isFiring: false }, CLEAR_MAX_MS);
    for (const rule of rules)
      times.push({ rule, fault: what, firedS: fired.get(rule)!, clearedS: cleared.get(rule)! });
  },
  FAULT_MAX_MS,
);

it('Alertmanager has delivered every alert and every recovery', async () => {
  const names = DEPLOYMENT_RULES.map(({ name }) => name).sort();
  await until('the last recovery is delivered', () => world.monitoring.delivered.resolved.size >= names.length);
  expect([...world.monitoring.delivered.firing].sort()).toEqual(names);
});
