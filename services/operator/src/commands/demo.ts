import { setTimeout as delay } from 'node:timers/promises';
import { Option } from '@commander-js/extra-typings';
import { FIRST_PROJECT, PROJECTS } from '@playline/access-keys';
import { TOPICS } from '@playline/contracts';
import { type DemoGameParts, type DemoLoad, loadDemoGame } from '@playline/demo-game';
import { createIdentityKeyer } from '@playline/people';
import { GROUPS } from '@playline/runtime';
import type { LogReader } from '@playline/stream';
import type { Addresses } from '../addresses.ts';
import { awaitLog, awaitSchemaId, withScope } from '../await-store.ts';
import { type CreateCommand, jsonCommand, printResult, UnreachableError, UsageError } from '../command.ts';
import { environmentOf } from '../keys/subcommands.ts';
import { requireEnvironment } from '../projects/environments.ts';
import { createAuthor } from '../records/record-access.ts';
import { createRecordSources } from '../records/record-sources.ts';
import { createLogSources, type RecordOpeners, type StoreOpeners } from '../store-openers.ts';
import { readCommittedBounds } from '../writable-log.ts';

export interface DemoContext {
  readonly addresses: Pick<Addresses, 'pepper'>;
  readonly topicPrefix: string;
}

type Stores = RecordOpeners & Pick<StoreOpeners, 'openPeople'>;

const HELP = `
Loads 30 days of a generated game, Ember Valley: about 2,000 players with sessions, a tutorial, purchases, consents,
shared devices, and two client versions, one of which sends invalid messages on the day of its release. The records are
published to the topics that gateways write. Only environments of the kind development are accepted.

Repeating the command does not add events: each message has the same id again, and views show each message once. The
rejections are recorded again.

Requires KAFKA_BROKERS, SCHEMA_REGISTRY_URL, REDIS_URL and IDENTITY_PEPPER, or a local stack.`;

const POLL_MS = 200;
const STORED_MAX_MS = 60_000;

export const createDemoCommand =
  (stores: Stores, { addresses, topicPrefix }: DemoContext): CreateCommand =>
  (terminal) =>
    jsonCommand('demo', 'load 30 days of a generated game into a development environment')
      .addOption(new Option('--project <project>', 'project id or name').default(FIRST_PROJECT))
      .addOption(new Option('--environment <name>', 'environment name or id').default('development'))
      .option('--writer-group <name>', 'consumer group of the event writer', GROUPS.writer)
      .addHelpText('after', HELP)
      .action(async ({ writerGroup, ...options }) => {
        const projects = createRecordSources(stores, { topicPrefix, author: createAuthor() })(PROJECTS);
        const { environment } = await requireEnvironment({ projects }, environmentOf(options));
        if (environment.kind !== 'development')
          throw new UsageError(
            `environment ${environment.id} is a ${environment.kind} environment: choose a development environment`,
          );
        const loaded = await load(stores, {
          environmentId: environment.id,
          topicPrefix,
          keyOf: createIdentityKeyer(addresses.pepper()),
          writerGroup,
          onProgress: terminal.progress,
        });
        const { messages, rejected, links, consents } = loaded;
        const line = `${messages} messages, ${rejected} rejections, ${links} links and ${consents} consents of 30 days are stored in ${environment.id}`;
        printResult(terminal, options, loaded, line);
      });

interface LoadOptions extends Pick<DemoGameParts, 'environmentId' | 'topicPrefix' | 'keyOf'> {
  readonly writerGroup: string;
  readonly onProgress: (line: string) => void;
}

function load(stores: Stores, { writerGroup, onProgress, ...options }: LoadOptions): Promise<DemoLoad> {
  const { topicPrefix } = options;
  const { schemas } = createLogSources(stores);
  const nameOf = (topic: keyof typeof TOPICS) => topicPrefix + TOPICS[topic].name;
  return withScope(async (open) => {
    const producer = await open(
      stores.openProducer(nameOf('messages'), nameOf('identityLinks'), nameOf('rejections'), nameOf('consents')),
    );
    const { consents } = await open(stores.openPeople());
    const log = await open(stores.openLog());
    await awaitLog(log);
    const loaded = await loadDemoGame({
      ...options,
      endAtMs: Date.now(),
      schemaIdOf: (topic, schema) => awaitSchemaId(schemas, topic, schema),
      producer,
      consents,
      onProgress: ({ days, messages }) => onProgress(`day ${days} of 30: ${messages} messages`),
    });
    await awaitStored(log, nameOf('messages'), writerGroup);
    return loaded;
  });
}

/** Waits until the event writer has stored the records that the topic contains now. @throws UnreachableError after a minute */
async function awaitStored(log: LogReader, topic: string, writerGroup: string): Promise<void> {
  const bounds = await readCommittedBounds(log, topic);
  const deadline = performance.now() + STORED_MAX_MS;
  for (;;) {
    const committed = await log.committed(writerGroup, topic);
    if (bounds.every(({ partition, start, end }) => (committed.get(partition) ?? start) >= end)) return;
    if (performance.now() > deadline)
      throw new UnreachableError(
        'all records are published, but the event writer has not stored them yet: check npm run status',
      );
    await delay(POLL_MS);
  }
}
