import { setTimeout as delay } from 'node:timers/promises';
import { measureCeiling } from '../cluster/links.ts';
import {
  type CpuSeconds,
  type MeasuredStack,
  mapCpu,
  measureIdle,
  openMeasuredStack,
  REPLICAS,
  sumOf,
} from '../cluster/measured-stack.ts';
import { measureQueries } from '../cluster/queries.ts';
import { atMost, type Figure, type Row, scaled, toRow } from '../figure.ts';
import { withOpened } from '../opened.ts';

const MESSAGES_PER_SECOND = 4_000;
/** A minute of messages. */
const MESSAGES = 60 * MESSAGES_PER_SECOND;
/** Posted at full speed, until code is compiled. */
const WARM_UP_MESSAGES = 400_000;
const ROUNDS = 3;
const ROWS = 5_000_000;
const LINKS = 30_000;
const IDLE_S = 30;
const QUERY_S = 3;

/** What is added up, as kinds of processes. A message has one row. */
const SUMS: Readonly<Record<string, readonly string[]>> = {
  'gateways and brokers': ['gateway', 'kafka'],
  'gateways and Redis': ['gateway', 'redis'],
  'writers, linkers and ClickHouse': ['event-writer', 'identity-linker', 'clickhouse'],
  everything: ['gateway', 'kafka', 'registry', 'redis', 'event-writer', 'identity-linker', 'clickhouse'],
};

interface Cost {
  /** CPU-seconds per second without messages. */
  readonly idle: CpuSeconds;
  /** CPU-seconds per million messages beyond those, for each round. */
  readonly rounds: readonly CpuSeconds[];
}

// The same messages for a stack with one of everything and for one with three brokers and two of everything else. The
// price of distributing work is compared without copies in Kafka and Redis; the price of the copies has its own rows.
export const cluster: Figure = {
  name: 'cluster',
  optional: true,
  measure: (bench) =>
    withOpened(async (keep) => {
      const size = { messages: 40 * scaled(bench, MESSAGES / 40), warmUp: 40 * scaled(bench, WARM_UP_MESSAGES / 40) };
      const idleS = Math.max(3, IDLE_S * bench.scale);
      const one = keep(await openMeasuredStack({ cluster: false, copies: 1 }));
      await one.store(size.warmUp);
      const [single, spread] = await withOpened(async (keepSpread) =>
        compare(one, keepSpread(await openMeasuredStack({ cluster: true, copies: 1 })), { ...size, idleS }),
      );
      const two = keep(await openMeasuredStack({ cluster: true, copies: 3 }));
      const [singleAgain, copied] = await compare(one, two, { ...size, idleS });
      return [
        ...toSpreadRows(single, spread),
        ...toCopyRows({ single: singleAgain, spread, copied }),
        await measureCeiling(one, two, scaled(bench, LINKS)),
        ...(await measureQueries(one, two, {
          rows: bench.rows ?? scaled(bench, ROWS),
          seconds: Math.max(0.5, QUERY_S * bench.scale),
        })),
      ];
    }),
};

/** Measures two stacks in turn. The first is warm. */
async function compare(
  one: MeasuredStack,
  two: MeasuredStack,
  { messages, warmUp, idleS }: { messages: number; warmUp: number; idleS: number },
): Promise<[Cost, Cost]> {
  await two.store(warmUp);
  await delay(idleS * 1000);
  const idle = [await measureIdle(one, idleS), await measureIdle(two, idleS)] as const;
  const rounds: [CpuSeconds[], CpuSeconds[]] = [[], []];
  for (let round = 0; round < ROUNDS; round++)
    for (const at of [0, 1] as const) {
      const { cpu, seconds } = await [one, two][at]!.watch(() => [one, two][at]!.store(messages, MESSAGES_PER_SECOND));
      rounds[at].push(mapCpu(cpu, (value, kind) => ((value - (idle[at][kind] ?? 0) * seconds) / messages) * 1e6));
    }
  return [
    { idle: idle[0], rounds: rounds[0] },
    { idle: idle[1], rounds: rounds[1] },
  ];
}

const meanOf = ({ rounds }: Cost, kinds: readonly string[]): number =>
  rounds.reduce((sum, round) => sum + sumOf(round, kinds), 0) / rounds.length;

const describe = (cost: Cost, kinds: readonly string[]): string =>
  kinds.map((kind) => `${kind} ${meanOf(cost, [kind]).toFixed(1)}`).join(', ');

const UNIT = 'CPU-seconds per million messages';
const ONE = 'one of everything';

const toSpreadRows = (single: Cost, spread: Cost): Row[] =>
  Object.entries(SUMS).map(([name, kinds]) => {
    const ratios = spread.rounds.map((round, at) => sumOf(round, kinds) / sumOf(single.rounds[at]!, kinds));
    return toRow({
      case: `${name}, two of each (three brokers), without copies`,
      unit: name.startsWith('writers') ? 'CPU-seconds per million rows' : UNIT,
      value: meanOf(spread, kinds),
      peer: ONE,
      peerValue: meanOf(single, kinds),
      bars: [atMost('ratio', 1.15, 1.1)],
      notes: `${describe(spread, kinds)}; ${ONE}: ${describe(single, kinds)}; rounds ${ratios.map((ratio) => ratio.toFixed(2)).join(', ')}`,
    });
  });

function toCopyRows({ single, spread, copied }: Record<'single' | 'spread' | 'copied', Cost>): Row[] {
  const all = [...SUMS.everything!, REPLICAS];
  const idleOf = ({ idle }: Cost) => sumOf(idle, all) * 100;
  return [
    toRow({
      case: 'three brokers, three copies of each record',
      unit: UNIT,
      value: meanOf(copied, ['kafka']),
      peer: 'one copy',
      peerValue: meanOf(spread, ['kafka']),
    }),
    toRow({
      case: 'three replicas in Redis',
      unit: UNIT,
      value: meanOf(copied, [REPLICAS]),
      peer: 'their primaries',
      peerValue: meanOf(copied, ['redis']),
    }),
    toRow({
      case: 'everything, two of each (three brokers), with copies',
      unit: UNIT,
      value: meanOf(copied, all),
      peer: ONE,
      peerValue: meanOf(single, all),
      notes: `${describe(copied, all)}; ${ONE}: ${describe(single, all)}`,
    }),
    toRow({
      case: 'everything, two of each (three brokers), without messages',
      unit: 'percent of a core',
      value: idleOf(copied),
      peer: ONE,
      peerValue: idleOf(single),
      notes: all.map((kind) => `${kind} ${(100 * (copied.idle[kind] ?? 0)).toFixed(1)}`).join(', '),
    }),
  ];
}
