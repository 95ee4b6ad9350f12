import { TOPICS } from '@playline/contracts';
import type { ErasureRecords } from '@playline/erasure';
import type { People } from '@playline/people';
import { createQueryRows } from '@playline/runtime';
import type { Producer } from '@playline/stream';
import type { Addresses, KafkaAddress, RedisAddress } from '../addresses.ts';
import { type Command, EXIT, parseOptions } from '../command.ts';
import type { OperatorConfig } from '../config.ts';
import { createIdentityTables } from '../identity/tables.ts';
import { openUnlinkLog } from '../identity/unlink-log.ts';
import { createConsentCommand } from './consent.ts';
import { createIdentityCommand, REBUILD_OPTIONS } from './identity.ts';
import { createLogSources, type LogAdapters } from './log-commands.ts';

/** Opens what Redis holds of people; the `./redis` adapter has it. */
export interface RedisAdapters {
  readonly openRedisPeople: (options: RedisAddress & { linkTopic: string; consentTopic: string }) => Promise<People>;
}

/** Opens what publishes; `@playline/stream/kafka` has it. */
export interface ProducerAdapters {
  readonly openProducer: (options: KafkaAddress & { clientId: string; topics: readonly string[] }) => Promise<Producer>;
}

export interface IdentityCommandsContext {
  readonly addresses: Addresses;
  readonly openRecords: () => ErasureRecords;
  readonly config: Pick<OperatorConfig, 'TOPIC_PREFIX' | 'LINK_TOPIC_GENERATION'>;
  /** The command of the access keys. */
  readonly keys: Command;
  /** The command of assets to be minted. */
  readonly mints: Command;
}

/** Opens the store of people of a deployment, whose keys bear the names of its topics. */
export function createOpenPeople(
  { openRedisPeople }: RedisAdapters,
  { redis }: Pick<Addresses, 'redis'>,
  topicPrefix: string,
): () => Promise<People> {
  const linkTopic = topicPrefix + TOPICS.identityLinks.name;
  const consentTopic = topicPrefix + TOPICS.consents.name;
  return async () => openRedisPeople({ ...redis(), linkTopic, consentTopic });
}

const HELP = `usage: operator rebuild [options]          (npm run rebuild)

For a Redis that was emptied: keys rebuild, which puts back all records of access, then identity rebuild, which takes the
consents along, then mints rebuild. Killed half-way it is simply run again. Options are those of identity rebuild.`;

/** The commands about identities, and those that restore Redis: `identity`, `consent`, and `rebuild` for all of it. */
export function createIdentityCommands(
  adapters: RedisAdapters & ProducerAdapters & Pick<LogAdapters, 'openLogReader' | 'createSchemaRegistry'>,
  { addresses, openRecords, config, keys, mints }: IdentityCommandsContext,
): Command[] {
  const { TOPIC_PREFIX: topicPrefix, LINK_TOPIC_GENERATION: generation } = config;
  const topics = {
    linkTopic: topicPrefix + TOPICS.identityLinks.name,
    consentTopic: topicPrefix + TOPICS.consents.name,
  };
  const sources = createLogSources(adapters, addresses);
  const context = {
    ...sources,
    openUnlinkLog: async () => {
      // Asked for before anything is opened.
      const [kafka] = [addresses.kafka(), addresses.registry()];
      const producer = await adapters.openProducer({ ...kafka, clientId: 'operator', topics: [topics.linkTopic] });
      return openUnlinkLog({ producer, log: sources.openLog(), schemas: sources.schemas, topicPrefix });
    },
    clickhouse: addresses.clickhouse,
    openRecords,
    openPeople: createOpenPeople(adapters, addresses, topicPrefix),
    openTables: () => createIdentityTables(createQueryRows(addresses.clickhouse())),
    pepper: addresses.pepper,
    ...{ topicPrefix, generation },
  };
  const identity = createIdentityCommand(context);
  const rebuild: Command = {
    name: 'rebuild',
    summary: 'restore a Redis that was emptied: access keys, identities, consents, mints',
    help: HELP,
    async run(args, terminal) {
      // Judged here already: the keys must not be rebuilt before a slip in the words is told.
      parseOptions(args, REBUILD_OPTIONS);
      const code = await keys.run(['rebuild'], terminal);
      if (code !== EXIT.ok) return code;
      const last = await identity.run(['rebuild', ...args], terminal);
      // Behind what everything waits for: activity writers bring most of it back by themselves.
      return last === EXIT.ok ? mints.run(['rebuild'], terminal) : last;
    },
  };
  return [identity, createConsentCommand(context), rebuild];
}
