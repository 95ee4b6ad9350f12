import { waitAtMost } from '@playline/stores';
import {
  assertTakesWrites,
  isReplyError,
  openRedis,
  type Redis,
  type RedisAdapterOptions,
} from '@playline/stores/redis';
import { MissingEpochFault, MissingFencesFault } from '../faults.ts';
import { DEFAULT_LIMITS, type GraphLimits } from '../graph.ts';
import type { People } from '../people.ts';
import { createConsents } from './consents.ts';
import { createGraph } from './graph.ts';
import { createGuards } from './guards.ts';
import { createLayout } from './layout.ts';
import { createRebuild } from './rebuild.ts';

export interface RedisPeopleOptions extends RedisAdapterOptions {
  /** A server that is silent for this long counts as away. Must be shorter than the caller's deadline. Default: 5 s. */
  commandTimeoutMs?: number;
  limits?: GraphLimits;
  /** Topic whose offsets the graph applies. Needed only by callers of `apply` and related functions. */
  linkTopic?: string;
  /** Topic of the consents; its name on the broker. Needed only by callers of the consents. */
  consentTopic?: string;
  /** Called by `ready` and `takesWrites` with the reason when Redis answers but cannot be used. */
  onUnusable?: (fault: Error) => void;
}

/** Opens people in Redis, over one connection. Resolves even while Redis is away; ask `ready`. */
export async function openRedisPeople(options: RedisPeopleOptions): Promise<People> {
  const { redis, opened, close } = openRedis(options, {
    commandTimeoutMs: options.commandTimeoutMs ?? COMMAND_TIMEOUT_MS,
  });
  await opened;
  const { namespace = '', linkTopic = '', consentTopic = '' } = options;
  const layout = createLayout({ namespace, linkTopic, consentTopic });
  const readEpoch = () => redis.get(layout.epoch);
  const parts = { redis, layout, readEpoch };
  const { loadConsents, ...consents } = createConsents(redis, layout);
  const guards = createGuards(redis, layout);
  return {
    graph: createGraph(parts, options.limits ?? DEFAULT_LIMITS),
    consents,
    guards,
    rebuild: { ...createRebuild(parts), loadConsents },
    readEpoch,
    ...createReadiness(redis, {
      readEpoch,
      hasFences: async () => (await guards.fenceStatus()).isComplete,
      onUnusable: options.onUnusable ?? (() => {}),
    }),
    rewriteLog: () => rewriteLog(redis),
    readClockMs: async () => {
      const [seconds] = await redis.time();
      return seconds * 1_000;
    },
    close,
  };
}

/** Long enough for several calls of the graph's script in a queue. */
const COMMAND_TIMEOUT_MS = 5_000;

/** A rewrite is running already. What it misses is removed by the next one. */
const IS_REWRITING = /already in progress/;

async function rewriteLog(redis: Redis): Promise<void> {
  try {
    await redis.call('BGREWRITEAOF');
  } catch (fault) {
    if (!(fault instanceof Error && IS_REWRITING.test(fault.message))) throw fault;
  }
}

/** Out of memory, out of disk, a replica, a primary that has lost its replicas. */
const REFUSES_WRITES = /^(OOM|MISCONF|READONLY|NOREPLICAS)\b/;
/** Less than the second that a readiness probe allows. */
const WRITE_CHECK_MS = 900;

interface ReadinessParts {
  readEpoch(): Promise<string | null>;
  hasFences(): Promise<boolean>;
  onUnusable(fault: Error): void;
}

/** Checks whether Redis can be used, and reports why not. */
function createReadiness(
  redis: Redis,
  { readEpoch, hasFences, onUnusable }: ReadinessParts,
): Pick<People, 'ready' | 'takesWrites'> {
  const check = async (): Promise<boolean> => {
    if (redis.status !== 'ready') return false;
    try {
      await assertTakesWrites(redis);
      return true;
    } catch (fault) {
      if (!isReplyError(fault)) return false;
      if (!REFUSES_WRITES.test(fault.message)) return true;
      onUnusable(fault);
      return false;
    }
  };
  const takesWrites = () => waitAtMost(WRITE_CHECK_MS, check(), () => false);
  return {
    takesWrites,
    ready: async () => {
      if (redis.status !== 'ready') return false;
      const [epoch, isFenced, isWritable] = await Promise.all([readEpoch(), hasFences(), takesWrites()]);
      if (epoch === null) onUnusable(new MissingEpochFault());
      else if (!isFenced) onUnusable(new MissingFencesFault());
      return epoch !== null && isFenced && isWritable;
    },
  };
}
