import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { TOPICS } from '@playline/contracts';
import { createReconnectPace } from '@playline/errors';
import { Redis } from 'ioredis';
import { type ConsentStore, LaggingStoreFault, type PlacedConsent } from '../consents.ts';
import { MissingEpochFault } from '../faults.ts';
import { createLayout } from './consent-layout.ts';
import { fromReply, fromStanding, fromValue, toValue } from './consent-wire.ts';

export interface RedisConsentStoreOptions {
  /** With its password: `redis://:password@host:port/database` */
  url: string;
  /** For `rediss://`: what is trusted, who we are, and the name that the certificate must bear. */
  tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername'>;
  /** Put before every key; '' in a deployment, tests keep apart with it. */
  namespace?: string;
  /** The log whose end the store keeps, as it is called on the broker. */
  topic?: string;
  /** Told of every fault of the connection; it reconnects by itself. */
  onFault?: (fault: Error) => void;
}

/** Shorter than the deadline of a request, so that a caller still gets its 500. */
const COMMAND_TIMEOUT_MS = 2_000;
const CONNECT_TIMEOUT_MS = 1_000;
/** An outage ends within this time of Redis being back. */
const RECONNECT_DELAY_MAX_MS = 500;

const scriptOf = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8');
const withRun = (name: string) => scriptOf('consent-run.lua') + scriptOf(`consent-${name}`);
const SCRIPTS = {
  putConsent: { lua: withRun('put.lua'), numberOfKeys: 4 },
  readConsent: { lua: withRun('read.lua'), numberOfKeys: 3 },
  markConsents: { lua: withRun('mark.lua'), numberOfKeys: 1 },
  consentStanding: { lua: withRun('standing.lua'), numberOfKeys: 1 },
} as const;

type Script = (...args: (string | number | Buffer)[]) => Promise<unknown>;
/** The scripts as ioredis adds them: by their hash, and by their text where the server does not know it yet. */
type Connection = Redis & Record<Exclude<keyof typeof SCRIPTS, 'readConsent'> | 'readConsentBuffer', Script>;

/** Opens the consents in Redis; resolves also while Redis is away, `ready` tells. */
export async function openRedisConsentStore(options: RedisConsentStoreOptions): Promise<ConsentStore> {
  const redis = connect(options);
  await redis.connect().catch(() => {});
  const layout = createLayout(options.namespace ?? '', options.topic ?? TOPICS.consents.name);

  const put = async (change: PlacedConsent, epoch: '' | 'epoch') => {
    const { environmentId, identityKey: key } = change;
    const buckets = [layout.consentsOf(environmentId, key), layout.fencesOf(environmentId, key)];
    const keys = [layout.epoch, ...buckets, layout.log];
    return fromReply(await redis.putConsent(...keys, key, toValue(change), change.receivedAt, epoch));
  };
  return {
    apply: (change) => put(change, 'epoch').catch(rethrow),
    load: (changes) => Promise.all(changes.map((change) => put(change, ''))),
    async read(environmentId, identityKey) {
      const keys = [layout.epoch, layout.consentsOf(environmentId, identityKey), layout.log];
      const value = await redis.readConsentBuffer(...keys, identityKey).catch(rethrow);
      return Buffer.isBuffer(value) ? fromValue(value) : null;
    },
    standing: async () => fromStanding(await redis.consentStanding(layout.log)),
    markCurrent: async (run, ends) => {
      const lasts = [...ends].filter(([, end]) => end > 0).flatMap(([partition, end]) => [partition, end - 1]);
      return (await redis.markConsents(layout.log, run, ...lasts)) === 1;
    },
    async forget(environmentId, identityKeys) {
      await Promise.all(identityKeys.map((key) => redis.hdel(layout.consentsOf(environmentId, key), key)));
    },
    ready: async () => redis.status === 'ready' && (await redis.exists(layout.epoch)) === 1,
    close: async () => redis.disconnect(),
  };
}

function connect({ url, tls, onFault }: RedisConsentStoreOptions): Connection {
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
    scripts: SCRIPTS,
  });
  redis.on('error', (fault) => {
    pace.heard(fault);
    onFault?.(fault);
  });
  return redis as Connection;
}

function rethrow(fault: unknown): never {
  if (fault instanceof Error && fault.message.startsWith('NOEPOCH')) throw new MissingEpochFault();
  if (fault instanceof Error && fault.message.startsWith('LAGGING')) throw new LaggingStoreFault();
  throw fault;
}
