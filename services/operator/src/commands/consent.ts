import { readCutoffs } from '@playline/erasure';
import { GROUPS } from '@playline/runtime';
import { type Command, EXIT, type ExitCode, parseOptions, type Terminal, textOf, UsageError } from '../command.ts';
import { restoreConsents, restoreLaterConsents, sum } from '../rebuild/restore-consents.ts';
import { type StoresContext, withStores } from '../rebuild/with-stores.ts';

const HELP = `usage: operator consent rebuild [options]          (npm run consent -- rebuild)

Puts the consents of tables and log back into Redis, behind the fences of erasures. Safe at any time, beside gateways
that write, and to repeat: the later place in the log wins. For a Redis that lost its last second, or doubts about one
answer. Where Redis was emptied, npm run rebuild restores everything, consents included.

  --writer-group ${GROUPS.writer}      consumer group of the event writer
  --json                           the result as one JSON line

Needs REDIS_URL, KAFKA_BROKERS, SCHEMA_REGISTRY_URL and CLICKHOUSE_URL with its account, or a stack that runs here
(.playline/stack.json).`;

const OPTIONS = {
  'writer-group': { type: 'string', default: GROUPS.writer },
  json: { type: 'boolean', default: false },
} as const;

export function createConsentCommand(context: StoresContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const { values, words } = parseOptions(args, OPTIONS, 1);
    if (words[0] !== 'rebuild') throw new UsageError('expected rebuild');
    const writerGroup = textOf(values, 'writer-group') ?? OPTIONS['writer-group'].default;
    await withStores(context, { writerGroup, onProgress: terminal.progress }, async (sources, people) => {
      await people.guards.fence(await readCutoffs(sources.records));
      const restored = await restoreConsents(sources, people);
      const consents = sum(restored.rebuilt, await restoreLaterConsents(sources, people, restored));
      const { applied, superseded, fenced } = consents;
      const line = `${applied} consents put back, ${superseded} changes that later ones stand for, ${fenced} erased`;
      terminal.result(values.json === true ? JSON.stringify(consents) : line);
      if ((await people.readEpoch()) === null)
        terminal.progress('there is no epoch: gateways refuse until npm run rebuild has put back the rest');
    });
    return EXIT.ok;
  };
  return { name: 'consent', summary: 'rebuild the consents', help: HELP, run };
}
