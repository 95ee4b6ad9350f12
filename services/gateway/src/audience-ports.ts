import { createKeyVerifier, type KeyVerifier, type KeyVerifierOptions } from '@playline/access-keys';
import { consentCodec, erasureRequestCodec, TOPICS } from '@playline/contracts';
import type { ConsentStore, ErasureHolds, IdentityGraph } from '@playline/people';
import type { Closable, Logger, TlsOptions } from '@playline/runtime';
import type { Config } from './config.ts';
import { openHoldSweep } from './hold-sweep.ts';
import { type LevelParts, openLevelConsents } from './level-stores.ts';
import { openSchemaIds, writtenSchemaOf } from './schema-ids.ts';

/** Ports of the operations on one identity: its consent and its erasure. */
export interface AudiencePorts {
  consents: Pick<ConsentStore, 'apply' | 'read'>;
  holds: Pick<ErasureHolds, 'place' | 'confirm' | 'release'>;
  identities: Pick<IdentityGraph, 'membersOf' | 'readEpoch' | 'ready' | 'takesWrites'>;
  /** Verifies secret keys. */
  verifySecret: KeyVerifier;
  /** Ids of the schemas of consents and erasures; null while the registry has not told them. */
  schemaIds: () => Readonly<Record<'consents' | 'erasures', number>> | null;
}

/** Redis and how it is connected to. */
interface RedisAddress {
  url: string;
  tls?: TlsOptions;
  onFault: (fault: Error) => void;
}

type OpenStore<T, Own = object> = (options: RedisAddress & Own) => Promise<T>;

export interface OpenAudiencePortsParts {
  /** What opens the stores: the composition root knows it. */
  open: {
    openRedisConsentStore: OpenStore<ConsentStore, { topic: string }>;
    openRedisErasureHolds: OpenStore<ErasureHolds>;
    openRedisIdentityGraph: OpenStore<IdentityGraph, { onUnusable: (fault: Error) => void }>;
  };
  redis: RedisAddress;
  /** Records of the secret keys. */
  store: KeyVerifierOptions['store'];
  /** What keeps the consents level with their log. */
  level: LevelParts;
  config: Pick<Config, 'TOPIC_PREFIX' | 'ACCESS_KEY_PREFIX'>;
  logger: Logger;
}

/**
 * Opens the ports and the sweep of holds that were left behind. Their schema ids are asked for apart from those of
 * messages, so a registry that lacks one of these keeps no message out.
 */
export async function openAudiencePorts(parts: OpenAudiencePortsParts): Promise<AudiencePorts & Closable> {
  const { config, logger } = parts;
  const onFault = (error: Error) => {
    logger.debug({ error }, 'the connection to Redis broke');
    parts.redis.onFault(error);
  };
  const at = { ...parts.redis, onFault };
  const [store, holds, identities] = await Promise.all([
    parts.open.openRedisConsentStore({ ...at, topic: config.TOPIC_PREFIX + TOPICS.consents.name }),
    parts.open.openRedisErasureHolds(at),
    parts.open.openRedisIdentityGraph({ ...at, onUnusable: parts.redis.onFault }),
  ]);
  const consents = openLevelConsents(store, parts.level);
  const written = {
    consents: writtenSchemaOf(config.TOPIC_PREFIX + TOPICS.consents.name, consentCodec),
    erasures: writtenSchemaOf(config.TOPIC_PREFIX + TOPICS.erasures.name, erasureRequestCodec),
  };
  const schemas = openSchemaIds(parts.level.registry, written, logger);
  const sweep = openHoldSweep(holds, logger);
  return {
    consents,
    holds,
    identities,
    verifySecret: createKeyVerifier({ store: parts.store, prefix: config.ACCESS_KEY_PREFIX, kind: 'secret' }),
    schemaIds: schemas.current,
    close: async () => {
      await Promise.all([sweep, schemas, consents, holds, identities].map((part) => part.close()));
    },
  };
}
