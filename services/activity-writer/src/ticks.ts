import type { Closable, Logger, Metrics } from '@playline/runtime';
import type { SendTick } from './steps/send-tick.ts';

/** A partition in which nothing came for so long gets a tick. */
export const IDLE_MS = 1_000;
/** How often partitions are looked at. */
const LOOK_MS = 250;

/** Which partitions are idle, and since when. */
export class IdlePartitions {
  /** When something came last, or a tick was sent; by `performance.now`. */
  readonly #busyAtMs = new Map<number, number>();

  taken(partition: number, nowMs: number): void {
    this.#busyAtMs.set(partition, nowMs);
  }

  /** Those of `current`, which are ours and have nothing left to read or write, that were idle long enough. */
  due(current: readonly number[], nowMs: number): number[] {
    return current.filter(
      (partition) => nowMs - (this.#busyAtMs.get(partition) ?? Number.NEGATIVE_INFINITY) >= IDLE_MS,
    );
  }
}

export interface TicksOptions {
  readonly topic: string;
  /** Records that wait, by `topic/partition`, of the partitions that are ours. */
  readonly lag: () => ReadonlyMap<string, number>;
  readonly sendTick: SendTick;
  readonly logger?: Logger;
  readonly metrics: Metrics;
}

export interface Ticks extends Closable {
  /** Something of a partition was read. */
  taken(partition: number): void;
  /** False when the last tick could not be put into the log: how far idle partitions are known stands still. */
  readonly working: boolean;
  /** Why it could not. */
  reasons(): Readonly<Record<string, string>>;
}

/** Sends ticks to idle partitions until it is closed. One that fails is sent again when the partition is due again. */
export function openTicks({ topic, lag, sendTick, logger, metrics }: TicksOptions): Ticks {
  const ticksTotal = metrics.counter('activity_writer_ticks_total', 'Ticks for idle partitions', ['outcome']);
  const idle = new IdlePartitions();
  const underWay = new Set<Promise<void>>();
  let why: string | null = null;
  const send = async (partition: number) => {
    try {
      await sendTick(partition);
      ticksTotal.inc({ outcome: 'sent' });
      why = null;
    } catch (error) {
      ticksTotal.inc({ outcome: 'failed' });
      if (why === null) logger?.warn({ error, topic, partition }, 'an idle partition gets no tick');
      why = `idle partitions get no ticks: ${error instanceof Error ? error.message : String(error)}`;
    }
  };
  const look = () => {
    const prefix = `${topic}/`;
    const current = [...lag()].filter(([name, waiting]) => name.startsWith(prefix) && waiting === 0);
    const partitions = current.map(([name]) => Number(name.slice(prefix.length)));
    for (const partition of idle.due(partitions, performance.now())) {
      idle.taken(partition, performance.now());
      const sent = send(partition).finally(() => underWay.delete(sent));
      underWay.add(sent);
    }
  };
  const timer = setInterval(look, LOOK_MS);
  return {
    taken: (partition) => idle.taken(partition, performance.now()),
    get working() {
      return why === null;
    },
    reasons: (): Readonly<Record<string, string>> => (why === null ? {} : { ticks: why }),
    close: async () => {
      clearInterval(timer);
      await Promise.all(underWay);
    },
  };
}
