import { readCutoffs } from '@playline/erasure';
import { GROUPS } from '@playline/runtime';
import { type CreateCommand, command } from '../command.ts';
import { restoreConsents, restoreLaterConsents, sum } from '../rebuild/restore-consents.ts';
import { type StoresContext, withStores } from '../rebuild/with-stores.ts';

const REBUILD = `
Safe at any time, also while gateways write, and to repeat: a later record of the log wins. Use it for a Redis that lost its
last second. Where Redis was emptied, npm run rebuild restores everything, consents included.

Needs REDIS_URL, KAFKA_BROKERS, SCHEMA_REGISTRY_URL and CLICKHOUSE_URL with its account, or a stack that runs here
(.playline/stack.json).`;

export const createConsentCommand =
  (context: StoresContext): CreateCommand =>
  (terminal) =>
    command('consent', 'rebuild the consents').addCommand(
      command('rebuild', 'restore the consents in Redis from tables and log, except erased ones')
        .option('--writer-group <group>', 'consumer group of the event writer', GROUPS.writer)
        .option('--json', 'print the result as JSON')
        .addHelpText('after', REBUILD)
        .action(async ({ writerGroup, json: isJson }) => {
          const options = { writerGroup, onProgress: terminal.progress };
          await withStores(context, options, async (sources, people) => {
            await people.guards.fence(await readCutoffs(sources.records));
            const restored = await restoreConsents(sources, people);
            const consents = sum(restored.rebuilt, await restoreLaterConsents(sources, people, restored));
            const { applied, superseded, fenced } = consents;
            const line = `${applied} consents restored, ${superseded} superseded by later changes, ${fenced} erased`;
            terminal.result(isJson === true ? JSON.stringify(consents) : line);
            if ((await people.readEpoch()) === null)
              terminal.progress(
                'Redis has no epoch: gateways refuse requests until npm run rebuild has restored the rest',
              );
          });
        }),
    );
