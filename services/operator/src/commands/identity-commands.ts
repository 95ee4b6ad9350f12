import { TOPICS } from '@playline/contracts';
import { createQueryRows } from '@playline/stores';
import type { Addresses } from '../addresses.ts';
import { runCommand } from '../app.ts';
import { type CreateCommand, endWith } from '../command.ts';
import type { OperatorConfig } from '../config.ts';
import { createIdentityTables } from '../identity/tables.ts';
import { openUnlinkLog } from '../identity/unlink-log.ts';
import { createLogSources, type LogOpeners, type StoreOpeners } from '../store-openers.ts';
import { createConsentCommand } from './consent.ts';
import { createIdentityCommand, rebuild, rebuildCommand } from './identity.ts';

export interface IdentityCommandsContext {
  readonly addresses: Pick<Addresses, 'clickhouse' | 'pepper' | 'registry'>;
  readonly config: Pick<OperatorConfig, 'TOPIC_PREFIX' | 'LINK_TOPIC_GENERATION'>;
  readonly keys: () => Promise<CreateCommand>;
  readonly mints: () => Promise<CreateCommand>;
}

const HELP = `
Runs keys rebuild, identity rebuild (which includes the consents) and mints rebuild. Safe to repeat after an interruption.`;

/** `identity`, `consent`, and `rebuild`, which restores everything in Redis. */
export function createIdentityCommands(
  stores: LogOpeners & Pick<StoreOpeners, 'openPeople' | 'openProducer' | 'openErasureRecords'>,
  { addresses, config, keys, mints }: IdentityCommandsContext,
): CreateCommand[] {
  const { TOPIC_PREFIX: topicPrefix, LINK_TOPIC_GENERATION: generation } = config;
  const sources = createLogSources(stores);
  const context = {
    ...sources,
    openUnlinkLog: async () => {
      // First, because it throws when no address is configured.
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
  const restore: CreateCommand = (terminal) =>
    rebuildCommand('rebuild', 'restore an empty Redis: access keys, identities, consents, mints')
      .addHelpText('after', HELP)
      .action(async (options) => {
        endWith(await runCommand([await keys()], ['keys', 'rebuild'], terminal));
        await rebuild(context, options, terminal);
        // Last, because nothing depends on mints and activity writers restore most of them.
        endWith(await runCommand([await mints()], ['mints', 'rebuild'], terminal));
      });
  return [createIdentityCommand(context), createConsentCommand(context), restore];
}
