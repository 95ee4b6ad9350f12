import { readCutoffs } from '@playline/erasure';
import { GROUPS } from '@playline/runtime';
import { type CreateCommand, command, jsonCommand, printResult } from '../command.ts';
import { restoreConsents, restoreLaterConsents, sum } from '../rebuild/restore-consents.ts';
import { type StoresContext, withStores } from '../rebuild/with-stores.ts';

const REBUILD = `
Safe at any time and to repeat: a later record of the log wins. Use it when Redis lost its last second. For an empty Redis
use npm run rebuild, which restores consents too.

Needs REDIS_URL, KAFKA_BROKERS, SCHEMA_REGISTRY_URL and CLICKHOUSE_URL with its account, or a local stack.`;

export const createConsentCommand =
  (context: StoresContext): CreateCommand =>
  (terminal) =>
    command('consent', 'rebuild the consents').addCommand(
      jsonCommand('rebuild', 'restore the consents in Redis from tables and log, except erased ones')
        .option('--writer-group <group>', 'consumer group of the event writer', GROUPS.writer)
        .addHelpText('after', REBUILD)
        .action(async ({ writerGroup, ...output }) => {
          const options = { writerGroup, onProgress: terminal.progress };
          await withStores(context, options, async (sources, people) => {
            await people.guards.fence(await readCutoffs(sources.records));
            const restored = await restoreConsents(sources, people);
            const consents = sum(restored.rebuilt, await restoreLaterConsents(sources, people, restored));
            const { applied, superseded, fenced } = consents;
            const line = `${applied} consents restored, ${superseded} superseded by later changes, ${fenced} erased`;
            printResult(terminal, output, consents, line);
            if ((await people.readEpoch()) === null)
              terminal.progress('Redis has no epoch: gateways refuse requests until npm run rebuild has completed');
          });
        }),
    );
