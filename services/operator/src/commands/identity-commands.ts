import { TOPICS } from '@playline/contracts';
import { createQueryRows } from '@playline/stores';
import type { Addresses } from '../addresses.ts';
import { type Command, EXIT, parseOptions } from '../command.ts';
import type { OperatorConfig } from '../config.ts';
import { createIdentityTables } from '../identity/tables.ts';
import { openUnlinkLog } from '../identity/unlink-log.ts';
import type { LogOpeners, StoreOpeners } from '../store-openers.ts';
import { createConsentCommand } from './consent.ts';
import { createIdentityCommand, REBUILD_OPTIONS } from './identity.ts';
import { createLogSources } from './log-commands.ts';

export interface IdentityCommandsContext {
  readonly addresses: Pick<Addresses, 'clickhouse' | 'pepper' | 'registry'>;
  readonly config: Pick<OperatorConfig, 'TOPIC_PREFIX' | 'LINK_TOPIC_GENERATION'>;
  /** Loads the command of the access keys. */
  readonly keys: () => Promise<Command>;
  /** Loads the command of assets to be minted. */
  readonly mints: () => Promise<Command>;
}

const HELP = `usage: operator rebuild [options]          (npm run rebuild)

For a Redis that was emptied: keys rebuild, which puts back all records of access, then identity rebuild, which takes the
consents along, then mints rebuild. Killed half-way it is simply run again. Options are those of identity rebuild.`;

/** The commands about identities, and those that restore Redis: `identity`, `consent`, and `rebuild` for all of it. */
export function createIdentityCommands(
  stores: LogOpeners & Pick<StoreOpeners, 'openPeople' | 'openProducer' | 'openErasureRecords'>,
  { addresses, config, keys, mints }: IdentityCommandsContext,
): Command[] {
  const { TOPIC_PREFIX: topicPrefix, LINK_TOPIC_GENERATION: generation } = config;
  const sources = createLogSources(stores);
  const context = {
    ...sources,
    openUnlinkLog: async () => {
      // Before anything is opened, because it throws when no address is configured.
      addresses.registry();
      const producer = await stores.openProducer(topicPrefix + TOPICS.identityLinks.name);
      return openUnlinkLog({ producer, log: await sources.openLog(), schemas: sources.schemas, topicPrefix });
    },
    clickhouse: addresses.clickhouse,
    openRecords: stores.openErasureRecords,
    openPeople: stores.openPeople,
    openTables: () => createIdentityTables(createQueryRows(addresses.clickhouse())),
    pepper: addresses.pepper,
    topicPrefix,
    generation,
  };
  const identity = createIdentityCommand(context);
  const rebuild: Command = {
    name: 'rebuild',
    summary: 'restore a Redis that was emptied: access keys, identities, consents, mints',
    help: HELP,
    async run(args, terminal) {
      // Checked here already, so that wrong arguments are reported before the keys are rebuilt.
      parseOptions(args, REBUILD_OPTIONS);
      const code = await (await keys()).run(['rebuild'], terminal);
      if (code !== EXIT.ok) return code;
      const last = await identity.run(['rebuild', ...args], terminal);
      // Last, because nothing else depends on it, and activity writers restore most of it by themselves.
      return last === EXIT.ok ? (await mints()).run(['rebuild'], terminal) : last;
    },
  };
  return [identity, createConsentCommand(context), rebuild];
}
