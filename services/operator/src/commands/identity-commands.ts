import { TOPICS } from '@playline/contracts';
import { readCutoffs } from '@playline/erasure';
import { GROUPS } from '@playline/runtime';
import { createQueryRows, overAllNodes } from '@playline/stores';
import type { Addresses } from '../addresses.ts';
import { runCommand } from '../app.ts';
import { type CreateCommand, command, endWith, jsonCommand, printResult } from '../command.ts';
import type { OperatorConfig } from '../config.ts';
import { createIdentityTables } from '../identity/tables.ts';
import { openUnlinkLog } from '../identity/unlink.ts';
import { restoreConsents, restoreLaterConsents, sum } from '../rebuild/rebuild-identity.ts';
import { type StoresContext, withStores } from '../rebuild/with-stores.ts';
import { createLogSources, type LogOpeners, type StoreOpeners } from '../store-openers.ts';
import { createIdentityCommand, rebuild, rebuildCommand } from './identity.ts';

const CONSENT_REBUILD = `
Use this command if Redis has lost its most recent writes. If Redis is empty, use npm run rebuild, which also restores
consents. The command is safe to repeat and to run at any time, because newer log records take precedence.

Requires REDIS_URL, KAFKA_BROKERS, SCHEMA_REGISTRY_URL, CLICKHOUSE_URL and its credentials, or a local stack.`;

const createConsentCommand =
  (context: StoresContext): CreateCommand =>
  (terminal) =>
    command('consent', 'manage consents in Redis').addCommand(
      jsonCommand('rebuild', 'restore consents from the tables and the log into Redis, except erased consents')
        .option('--writer-group <group>', 'consumer group of the event writer', GROUPS.writer)
        .addHelpText('after', CONSENT_REBUILD)
        .action(async ({ writerGroup, ...output }) => {
          const options = { writerGroup, onProgress: terminal.progress };
          await withStores(context, options, async (sources, people) => {
            await people.guards.fence(await readCutoffs(sources.records));
            const restored = await restoreConsents(sources, people);
            const consents = sum(restored.rebuilt, await restoreLaterConsents(sources, people, restored));
            const { applied, superseded, fenced } = consents;
            const line = `${applied} consents restored, ${superseded} superseded by newer changes, ${fenced} erased`;
            printResult(terminal, output, consents, line);
            if ((await people.readEpoch()) === null)
              terminal.progress(
                'Redis has no epoch: run npm run rebuild. Gateways refuse requests until the rebuild completes',
              );
          });
        }),
    );

export interface IdentityCommandsContext {
  readonly addresses: Pick<Addresses, 'clickhouse' | 'pepper' | 'registry'>;
  readonly config: Pick<OperatorConfig, 'TOPIC_PREFIX' | 'LINK_TOPIC_GENERATION'>;
  readonly keys: () => Promise<CreateCommand>;
  readonly mints: () => Promise<CreateCommand>;
}

const HELP = `
Runs keys rebuild, identity rebuild (which includes consents) and mints rebuild. To resume, run the command again.`;

/** Creates `identity`, `consent` and `rebuild`; `rebuild` restores all data in Redis. */
export function createIdentityCommands(
  stores: LogOpeners & Pick<StoreOpeners, 'openPeople' | 'openProducer' | 'openErasureRecords'>,
  { addresses, config, keys, mints }: IdentityCommandsContext,
): CreateCommand[] {
  const { TOPIC_PREFIX: topicPrefix, LINK_TOPIC_GENERATION: generation } = config;
  const sources = createLogSources(stores);
  const context = {
    ...sources,
    openUnlinkLog: async () => {
      // Called first, to throw before a producer is opened if no address is configured.
      addresses.registry();
      const producer = await stores.openProducer(topicPrefix + TOPICS.identityLinks.name);
      return openUnlinkLog({ producer, log: await sources.openLog(), schemas: sources.schemas, topicPrefix });
    },
    clickhouse: addresses.clickhouse,
    openRecords: stores.openErasureRecords,
    openPeople: stores.openPeople,
    openTables: () => createIdentityTables(createQueryRows(overAllNodes(addresses.clickhouse()))),
    pepper: addresses.pepper,
    topicPrefix,
    generation,
  };
  const restore: CreateCommand = (terminal) =>
    rebuildCommand('rebuild', 'restore access keys, identities, consents and mints into an empty Redis')
      .addHelpText('after', HELP)
      .action(async (options) => {
        endWith(await runCommand([await keys()], ['keys', 'rebuild'], terminal));
        await rebuild(context, options, terminal);
        // Last, because no other step depends on mints, and because activity writers restore most mints.
        endWith(await runCommand([await mints()], ['mints', 'rebuild'], terminal));
      });
  return [createIdentityCommand(context), createConsentCommand(context), restore];
}
