import { createRedisClientSetup, type RedisClientOptions, waitAtMost } from '@playline/errors';
import { Redis } from 'ioredis';
import { MissingEpochFault } from '../faults.ts';
import { DEFAULT_LIMITS, type GraphLimits } from '../graph.ts';
import type { People } from '../people.ts';
import { createConsents } from './consents.ts';
import { createGraph } from './graph.ts';
import { createGuards } from './guards.ts';
import { createLayout } from './layout.ts';
import { createRebuild } from './rebuild.ts';

export interface RedisPeopleOptions extends RedisClientOptions {
  /** A server that is silent for this long counts as away. Must be shorter than the deadline of whoever asks; 5 s unless told. */
  commandTimeoutMs?: number;
  /** Put before every key; '' in a deployment, tests keep apart with it. */
  namespace?: string;
  limits?: GraphLimits;
  /** Topic whose offsets the graph's `apply` and its kin speak of; whoever calls none of them need not name it. */
  linkTopic?: string;
  /** The log whose end the consents keep, as it is called on the broker; whoever asks for no consent need not name it. */
  consentTopic?: string;
  /** Told with every `ready` and `takesWrites` why this Redis cannot be worked with although it answers. */
  onUnusable?: (fault: Error) => void;
}

/** Opens all about people in Redis, over one connection; resolves also while Redis is away, `ready` tells. */
export async function openRedisPeople(options: RedisPeopleOptions): Promise<People> {
  const redis = await connect(options);
  const { namespace = '', linkTopic = '', consentTopic = '' } = options;
  const layout = createLayout({ namespace, linkTopic, consentTopic });
  const readEpoch = () => redis.get(layout.epoch);
  const parts = { redis, layout, readEpoch };
  const { loadConsents, ...consents } = createConsents(redis, layout);
  return {
    graph: createGraph(parts, options.limits ?? DEFAULT_LIMITS),
    consents,
    guards: createGuards(redis, layout),
    rebuild: { ...createRebuild(parts), loadConsents },
    readEpoch,
    ...createReadiness(redis, { readEpoch, onUnusable: options.onUnusable ?? (() => {}) }),
    rewriteLog: () => rewriteLog(redis),
    close: async () => redis.disconnect(),
  };
}

/** Long enough for calls of the graph's script that wait behind each other. */
const COMMAND_TIMEOUT_MS = 5_000;
const WAITS = { connectMaxMs: 2_000, reconnectMaxMs: 500 };

/** Connects; resolves also while Redis is away. */
async function connect(options: RedisPeopleOptions): Promise<Redis> {
  const setup = createRedisClientSetup(options, WAITS);
  const redis = new Redis(options.url, {
    ...setup.options,
    lazyConnect: true,
    autoResendUnfulfilledCommands: false,
    commandTimeout: options.commandTimeoutMs ?? COMMAND_TIMEOUT_MS,
  });
  redis.on('error', setup.onError);
  await redis.connect().catch(() => {});
  return redis;
}

/** The one that runs began before; what it misses goes with the next. */
const IS_REWRITING = /already in progress/;

async function rewriteLog(redis: Redis): Promise<void> {
  try {
    await redis.call('BGREWRITEAOF');
  } catch (fault) {
    if (!(fault instanceof Error && IS_REWRITING.test(fault.message))) throw fault;
  }
}

/** A script that may write, and writes nothing: refused just when writes are, whatever they are refused for. */
const MAY_WRITE = '#!lua\nreturn 1';
/** Out of memory, out of disk, a replica, a primary that has lost its replicas. */
const REFUSES_WRITES = /^(OOM|MISCONF|READONLY|NOREPLICAS)\b/;
/** Below the second that a probe of readiness gives each question. */
const WRITE_CHECK_MS = 900;

/** What tells whether this Redis can be worked with, and why not. */
function createReadiness(
  redis: Redis,
  { readEpoch, onUnusable }: { readEpoch(): Promise<string | null>; onUnusable(fault: Error): void },
): Pick<People, 'ready' | 'takesWrites'> {
  const check = async (): Promise<boolean> => {
    if (redis.status !== 'ready') return false;
    try {
      await redis.eval(MAY_WRITE, 0);
      return true;
    } catch (fault) {
      if (!(fault instanceof Error && fault.name === 'ReplyError')) return false;
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
      const [epoch, isWritable] = await Promise.all([readEpoch(), takesWrites()]);
      if (epoch === null) onUnusable(new MissingEpochFault());
      return epoch !== null && isWritable;
    },
  };
}
