import { TOPICS } from '@playline/contracts';
import type { ConsentStore, ErasureHolds, IdentityGraph } from '@playline/people';
import type { Addresses, RedisAddress } from '../addresses.ts';
import { type Command, EXIT, parseOptions } from '../command.ts';
import type { OperatorConfig } from '../config.ts';
import { createConsentCommand } from './consent.ts';
import { createIdentityCommand, REBUILD_OPTIONS } from './identity.ts';
import { createLogSources, type LogAdapters } from './log-commands.ts';

/** Opens what Redis holds, apart from the access keys; the `./redis` adapters of the nouns have them. */
export interface RedisAdapters {
  readonly openRedisIdentityGraph: (options: RedisAddress & { linkTopic: string }) => Promise<IdentityGraph>;
  readonly openRedisConsentStore: (options: RedisAddress & { topic: string }) => Promise<ConsentStore>;
  readonly openRedisErasureHolds: (options: RedisAddress) => Promise<ErasureHolds>;
}

export interface IdentityCommandsContext {
  readonly addresses: Addresses;
  readonly config: Pick<OperatorConfig, 'TOPIC_PREFIX' | 'LINK_TOPIC_GENERATION'>;
  /** The command of the access keys. */
  readonly keys: Command;
}

const HELP = `usage: operator rebuild [options]          (npm run rebuild)

For a Redis that was emptied: keys rebuild, then identity rebuild, which takes the consents along. Killed half-way it is
simply run again. Options are those of identity rebuild.`;

/** The commands that restore Redis: `identity`, `consent`, and `rebuild` for all of it. */
export function createIdentityCommands(
  adapters: RedisAdapters & Pick<LogAdapters, 'openLogReader' | 'createSchemaRegistry'>,
  { addresses, config, keys }: IdentityCommandsContext,
): Command[] {
  const { TOPIC_PREFIX: topicPrefix, LINK_TOPIC_GENERATION: generation } = config;
  const linkTopic = topicPrefix + TOPICS.identityLinks.name;
  const context = {
    ...createLogSources(adapters, addresses),
    clickhouse: addresses.clickhouse,
    openGraph: async () => adapters.openRedisIdentityGraph({ ...addresses.redis(), linkTopic }),
    openConsents: async () =>
      adapters.openRedisConsentStore({ ...addresses.redis(), topic: topicPrefix + TOPICS.consents.name }),
    openHolds: async () => adapters.openRedisErasureHolds(addresses.redis()),
    ...{ topicPrefix, generation },
  };
  const identity = createIdentityCommand(context);
  const rebuild: Command = {
    name: 'rebuild',
    summary: 'restore a Redis that was emptied: access keys, identities, consents',
    help: HELP,
    async run(args, terminal) {
      // Judged here already: the keys must not be rebuilt before a slip in the words is told.
      parseOptions(args, REBUILD_OPTIONS);
      const code = await keys.run(['rebuild'], terminal);
      return code === EXIT.ok ? identity.run(['rebuild', ...args], terminal) : code;
    },
  };
  return [identity, createConsentCommand(context), rebuild];
}
