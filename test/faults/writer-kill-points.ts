import type { InsertWatch } from './writer-clickhouse-gate.ts';
import type { CommitWatch } from './writer-kafka-gate.ts';
import type { GatedProcess } from './writer-process.ts';

/** Holds a passage up until it is let go. */
type Hold = () => Promise<void>;

interface Watches {
  readonly kafka?: CommitWatch;
  readonly clickhouse?: InsertWatch;
}

/** Commits that name a block; `e` is its end. */
const isIntent = (metadata: string) => metadata.includes('"e":');

/** Watches commits only once an insert has been answered: those that come then complete a block. */
function afterInsert(create: (isOver: () => boolean) => CommitWatch): Watches {
  let isOver = false;
  const answered = () => {
    isOver = true;
    return false;
  };
  return { clickhouse: { answered }, kafka: create(() => isOver) };
}

/** The passage of each kill point. */
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

/** A writer that will stand still at a point. */
export interface Trap {
  /** Resolves when the writer stands there; never at `at any moment`. */
  readonly reached: Promise<void>;
  /** Lets everything that is held go on. */
  release(): void;
}

/**
 * Makes a writer stand still at a point. Nothing of the writer is changed: its request, or the answer to it, waits at a
 * gate, and everything behind it.
 * @param options.passages so many passages of the point go by first
 * @param options.breaksOff whether a connection to the engine breaks off when it is let go
 */
export function setTrap(
  victim: GatedProcess,
  options: { point: KillPoint; passages: number; breaksOff: boolean },
): Trap {
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
  return { reached: reached.promise, release: released.resolve };
}
