import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { createReconnectPace } from '@playline/errors';
import { Redis } from 'ioredis';
import type { ErasureHolds, HoldName } from '../holds.ts';
import { createLayout, type Layout } from './hold-layout.ts';
import { fromMember, toLease, toMember } from './hold-wire.ts';

export interface RedisErasureHoldsOptions {
  /** With its password: `redis://:password@host:port/database` */
  url: string;
  /** For `rediss://`: what is trusted, who we are, and the name that the certificate must bear. */
  tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername'>;
  /** Put before every key; '' in a deployment, tests keep apart with it. The identity graph's must be the same. */
  namespace?: string;
  /** Told of every fault of the connection; it reconnects by itself. */
  onFault?: (fault: Error) => void;
}

/** Shorter than the deadline of a request, so that a caller still gets its 500. */
const COMMAND_TIMEOUT_MS = 2_000;
const CONNECT_TIMEOUT_MS = 1_000;
/** An outage ends within this time of Redis being back. */
const RECONNECT_DELAY_MAX_MS = 500;
/** Far more than gateways leave behind between two sweeps; what is left comes with the next. */
const LAPSED_A_SWEEP_MAX = 1_000;

const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8');
const toScript = (file: string) => ({ lua: read('hold-keep.lua') + read(`hold-${file}`), numberOfKeys: 4 });
const scripts = {
  placeHold: toScript('place.lua'),
  confirmHold: toScript('confirm.lua'),
  releaseHold: toScript('release.lua'),
};
type Call = (...args: (string | Buffer | number)[]) => Promise<unknown>;
/** The scripts as ioredis adds them: by their hash, and by their text where the server does not know them yet. */
type Connection = Redis & Readonly<Record<keyof typeof scripts, Call>>;

/** Opens the holds in Redis; resolves also while Redis is away. */
export async function openRedisErasureHolds(options: RedisErasureHoldsOptions): Promise<ErasureHolds> {
  const redis = connect(options);
  await redis.connect().catch(() => {});
  const layout = createLayout(options.namespace ?? '');
  return {
    async place(hold) {
      // The list first: a hold that is not on it would never lapse; an entry without a hold does no harm.
      if (hold.lapsesAtMs !== null) await redis.zadd(layout.lapsing, hold.lapsesAtMs, toMember(hold));
      await redis.placeHold(...layout.keysOf(hold.environmentId), hold.erasureId, toLease(hold));
    },
    async confirm({ environmentId, erasureId }) {
      return (await redis.confirmHold(...layout.keysOf(environmentId), erasureId)) === 1;
    },
    release: async (name) => void (await release(redis, layout, { ...name, lapsedAtMs: '' })),
    async dropLapsed(nowMs) {
      const range = [layout.lapsing, '-inf', nowMs, 'LIMIT', 0, LAPSED_A_SWEEP_MAX] as const;
      let dropped = 0;
      for (const member of await redis.zrangebyscoreBuffer(...range)) {
        if (await release(redis, layout, { ...fromMember(member), lapsedAtMs: nowMs })) dropped++;
        await redis.zrem(layout.lapsing, member);
      }
      return dropped;
    },
    close: async () => redis.disconnect(),
  };
}

async function release(
  redis: Connection,
  layout: Layout,
  { environmentId, erasureId, lapsedAtMs }: HoldName & { lapsedAtMs: number | '' },
): Promise<boolean> {
  return (await redis.releaseHold(...layout.keysOf(environmentId), erasureId, lapsedAtMs)) === 1;
}

function connect({ url, tls, onFault }: RedisErasureHoldsOptions): Connection {
  const pace = createReconnectPace('Redis', RECONNECT_DELAY_MAX_MS);
  const redis = new Redis(url, {
    ...(tls === undefined ? {} : { tls }),
    lazyConnect: true,
    // A command whose connection broke fails: whether to try again is the caller's business.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: pace.waitMs,
    scripts,
  });
  redis.on('error', (fault) => {
    pace.heard(fault);
    onFault?.(fault);
  });
  return redis as Connection;
}
