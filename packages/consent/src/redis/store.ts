import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { createReconnectPace } from '@playline/errors';
import { Redis } from 'ioredis';
import { type ConsentStore, MissingEpochFault, type PlacedConsent } from '../store.ts';
import { createLayout } from './layout.ts';
import { fromReply, fromValue, toValue } from './wire.ts';

export interface RedisConsentStoreOptions {
  /** With its password: `redis://:password@host:port/database` */
  url: string;
  /** For `rediss://`: what is trusted, who we are, and the name that the certificate must bear. */
  tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername'>;
  /** Put before every key; '' in a deployment, tests keep apart with it. */
  namespace?: string;
  /** Told of every fault of the connection; it reconnects by itself. */
  onFault?: (fault: Error) => void;
}

/** Shorter than the deadline of a request, so that a caller still gets its 500. */
const COMMAND_TIMEOUT_MS = 2_000;
const CONNECT_TIMEOUT_MS = 1_000;
/** An outage ends within this time of Redis being back. */
const RECONNECT_DELAY_MAX_MS = 500;

const PUT = readFileSync(new URL('put.lua', import.meta.url), 'utf8');

/** The script as ioredis adds it: by its hash, and by its text where the server does not know it yet. */
interface Connection extends Redis {
  putConsent(...args: (string | number | Buffer)[]): Promise<unknown>;
}

/** Opens the consents in Redis; resolves also while Redis is away, `ready` tells. */
export async function openRedisConsentStore(options: RedisConsentStoreOptions): Promise<ConsentStore> {
  const redis = connect(options);
  await redis.connect().catch(() => {});
  const layout = createLayout(options.namespace ?? '');

  const put = async (change: PlacedConsent, epoch: '' | 'epoch') => {
    const { environmentId, identityKey: key } = change;
    const keys = [layout.epoch, layout.consentsOf(environmentId, key), layout.fencesOf(environmentId, key)];
    return fromReply(await redis.putConsent(...keys, key, toValue(change), change.receivedAt, epoch));
  };
  return {
    apply: (change) => put(change, 'epoch').catch(rethrow),
    load: (changes) => Promise.all(changes.map((change) => put(change, ''))),
    async read(environmentId, identityKey) {
      // Both in one step: a store that is lost or rebuilt in between must not pass for one that knows nothing.
      const question = redis.multi().exists(layout.epoch);
      const answers = await question.hgetBuffer(layout.consentsOf(environmentId, identityKey), identityKey).exec();
      const [epoch, value] = (answers ?? []).map(([fault, answer]) => {
        if (fault !== null) throw fault;
        return answer;
      });
      if (epoch !== 1) throw new MissingEpochFault();
      return Buffer.isBuffer(value) ? fromValue(value) : null;
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
    scripts: { putConsent: { lua: PUT, numberOfKeys: 3 } },
  });
  redis.on('error', (fault) => {
    pace.heard(fault);
    onFault?.(fault);
  });
  return redis as Connection;
}

function rethrow(fault: unknown): never {
  if (fault instanceof Error && fault.message.startsWith('NOEPOCH')) throw new MissingEpochFault();
  throw fault;
}
