import type { InsertWatch } from './writer-clickhouse-gate.ts';
import type { CommitWatch } from './writer-kafka-gate.ts';
import type { GatedProcess } from './writer-process.ts';

/** Delays a request until released. */
type Hold = () => Promise<void>;

interface Watches {
  readonly kafka?: CommitWatch;
  readonly clickhouse?: InsertWatch;
}

/** A commit of an intent: its metadata has `e`, the end of a block. */
const isIntent = (metadata: string) => metadata.includes('"e":');

/** Watches commits only after an insert was answered. Those commits complete a block. */
function afterInsert(create: (isOver: () => boolean) => CommitWatch): Watches {
  let isOver = false;
  const answered = () => {
    isOver = true;
    return false;
  };
  return { clickhouse: { answered }, kafka: create(() => isOver) };
}

const POINTS = {
  'before the intent': (hold: Hold): Watches => ({
    kafka: { arrived: (metadata) => (isIntent(metadata) ? hold() : undefined) },
  }),
  'after the intent, which the writer does not know': (hold: Hold): Watches => {
    let isNamed = false;
    const arrived = (metadata: string) => {
      isNamed ||= isIntent(metadata);
    };
    return { kafka: { arrived, answered: () => (isNamed ? hold() : undefined) } };
  },
  'after the intent, before the insert': (hold: Hold): Watches => ({ clickhouse: { arrived: hold } }),
  'after the insert was sent': (hold: Hold, breaksOff: boolean): Watches => ({
    clickhouse: { sent: () => hold().then(() => breaksOff) },
  }),
  'after the insert was stored, which the writer does not know': (hold: Hold): Watches => ({
    clickhouse: { answered: () => hold().then(() => false) },
  }),
  'after the insert was acknowledged, before the commit': (hold: Hold): Watches =>
    afterInsert((isOver) => ({ arrived: () => (isOver() ? hold() : undefined) })),
  'after the commit, which the writer does not know': (hold: Hold): Watches =>
    afterInsert((isOver) => ({ answered: () => (isOver() ? hold() : undefined) })),
  'at any moment': (): Watches => ({}),
};

export type KillPoint = keyof typeof POINTS;
export const KILL_POINTS = Object.keys(POINTS) as KillPoint[];

export type Trap = ReturnType<typeof setTrap>;

/**
 * Stops a writer at a point, where its request, or the answer to it, waits at a gate.
 * @param options.passages how often the writer passes the point before
 * @param options.breaksOff whether the connection to ClickHouse breaks on release
 */
export function setTrap(victim: GatedProcess, options: { point: KillPoint; passages: number; breaksOff: boolean }) {
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  let passages = 0;
  const hold = async () => {
    if (passages++ < options.passages) return;
    reached.resolve();
    await released.promise;
  };
  const { kafka = {}, clickhouse = {} } = POINTS[options.point](hold, options.breaksOff);
  victim.kafka.watch = kafka;
  victim.clickhouse.watch = clickhouse;
  /** `reached` resolves when the writer has reached the point; never for `at any moment`. */
  return { reached: reached.promise, release: () => released.resolve() };
}
