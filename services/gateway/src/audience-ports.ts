import { createKeyVerifier, type KeyVerifier, type KeyVerifierOptions } from '@playline/access-keys';
import { consentCodec, erasureRequestCodec, TOPICS } from '@playline/contracts';
import type { ConsentStore, ErasureGuards, IdentityGraph, People } from '@playline/people';
import type { Closable, Logger, TlsOptions } from '@playline/runtime';
import type { Config } from './config.ts';
import { openHoldSweep } from './hold-sweep.ts';
import { type LevelParts, openLevelConsents } from './level-stores.ts';
import { openSchemaIds, writtenSchemaOf } from './schema-ids.ts';

/** Ports of the operations on one identity: its consent and its erasure. */
export interface AudiencePorts {
  /** Kept level with their log. */
  consents: Pick<ConsentStore, 'apply' | 'read'>;
  /** The rest of what is known of people. */
  people: AudiencePeople;
  /** Verifies secret keys. */
  verifySecret: KeyVerifier;
  /** Ids of the schemas of consents and erasures; null while the registry has not told them. */
  schemaIds: () => Readonly<Record<'consents' | 'erasures', number>> | null;
}

export interface AudiencePeople extends Pick<People, 'readEpoch' | 'ready' | 'takesWrites'> {
  graph: Pick<IdentityGraph, 'membersOf'>;
  guards: Pick<ErasureGuards, 'place' | 'confirm' | 'release'>;
}

/** Redis and how it is connected to. */
interface RedisAddress {
  url: string;
  tls?: TlsOptions;
  onFault: (fault: Error) => void;
}

export interface OpenAudiencePortsParts {
  /** What opens the store: the composition root knows it. */
  openRedisPeople: (
    options: RedisAddress & { consentTopic: string; commandTimeoutMs: number; onUnusable: (fault: Error) => void },
  ) => Promise<People>;
  redis: RedisAddress;
  /** Records of the secret keys. */
  store: KeyVerifierOptions['store'];
  /** What keeps the consents level with their log. */
  level: LevelParts;
  config: Pick<Config, 'TOPIC_PREFIX' | 'ACCESS_KEY_PREFIX'>;
  logger: Logger;
}

/** Shorter than the deadline of a request, so that a caller still gets its 500. */
const COMMAND_TIMEOUT_MS = 2_000;

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
  const people = await parts.openRedisPeople({
    ...{ ...parts.redis, onFault, onUnusable: parts.redis.onFault },
    consentTopic: config.TOPIC_PREFIX + TOPICS.consents.name,
    commandTimeoutMs: COMMAND_TIMEOUT_MS,
  });
  const consents = openLevelConsents(people.consents, parts.level);
  const written = {
    consents: writtenSchemaOf(config.TOPIC_PREFIX + TOPICS.consents.name, consentCodec),
    erasures: writtenSchemaOf(config.TOPIC_PREFIX + TOPICS.erasures.name, erasureRequestCodec),
  };
  const schemas = openSchemaIds(parts.level.registry, written, logger);
  const sweep = openHoldSweep(people.guards, logger);
  return {
    consents,
    people,
    verifySecret: createKeyVerifier({ store: parts.store, prefix: config.ACCESS_KEY_PREFIX, kind: 'secret' }),
    schemaIds: schemas.current,
    close: async () => {
      await Promise.all([sweep, schemas, consents].map((part) => part.close()));
      await people.close();
    },
  };
}
