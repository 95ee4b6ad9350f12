import type { Readable } from 'node:stream';
import type { Addresses } from '../addresses.ts';
import type { CreateCommand } from '../command.ts';
import type { OperatorConfig } from '../config.ts';
import type { StoreOpeners } from '../store-openers.ts';

/** Commands whose modules are loaded together on first use. */
export interface CommandGroup {
  readonly names: readonly string[];
  load(): Promise<readonly CreateCommand[]>;
}

export interface CommandContext {
  readonly config: OperatorConfig;
  readonly addresses: Addresses;
  readonly stores: StoreOpeners;
  /** Working directory. */
  readonly folder: string;
  readonly stdin: Readable;
  readonly stdout: NodeJS.WritableStream;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Aborted when the user interrupts the command. */
  readonly stop: AbortSignal;
}

/** All commands, in the order of the help screen. */
export const createCommandGroups = (parts: CommandContext): readonly CommandGroup[] => [
  ...createAccessGroups(parts),
  ...createTableGroups(parts),
  ...createTopicGroups(parts),
];

/** Grouped together because `rebuild` runs commands for access keys, identities and mints, and `restore` runs it. */
function createAccessGroups(parts: CommandContext): CommandGroup[] {
  const { config, addresses, stores, folder, environment, stop } = parts;
  const access = async () =>
    (await import('./access-commands.ts')).createAccessCommands(stores, { addresses, config, folder });
  const mints = async () => (await import('./mints.ts')).createMintCommand(stores, config.TOPIC_PREFIX);
  const loadIdentity = async () => {
    const keys = async () => (await access()).keys;
    const { createIdentityCommands } = await import('./identity-commands.ts');
    return createIdentityCommands(stores, { addresses, config, keys, mints });
  };
  const loadBackup = async () => {
    const { createBackupCommands } = await import('./backup.ts');
    const shared = { ...stores, config, addresses, folder, environment, stop, wallClockMs: Date.now };
    return createBackupCommands({ ...shared, loadRebuild: loadIdentity });
  };
  return [
    { names: ['keys', 'projects', 'accounts', 'collections'], load: async () => Object.values(await access()) },
    { names: ['mints'], load: async () => [await mints()] },
    { names: ['identity', 'consent', 'rebuild'], load: loadIdentity },
    { names: ['backup', 'restore'], load: loadBackup },
  ];
}

function createTableGroups({ addresses, stores, folder, environment, stop }: CommandContext): CommandGroup[] {
  const { openErasureRows: openRows, openErasureRecords: openRecords, openPeople } = stores;
  const loadErasures = async () => {
    const { createErasuresCommand } = await import('./erasures.ts');
    return [createErasuresCommand({ openRows, openRecords, openPeople, wallClockMs: Date.now, stop })];
  };
  const loadColumns = async () => {
    const { createColumnsCommand } = await import('./columns.ts');
    return [createColumnsCommand({ clickhouse: addresses.clickhouse, wallClockMs: Date.now, stop })];
  };
  const loadAnalysts = async () => {
    const { createAnalystsCommand } = await import('./analysts.ts');
    return [createAnalystsCommand({ clickhouse: addresses.clickhouse, folder, environment })];
  };
  return [
    { names: ['erasures'], load: loadErasures },
    { names: ['columns'], load: loadColumns },
    { names: ['analysts'], load: loadAnalysts },
  ];
}

function createTopicGroups({ config, addresses, stores, folder, stdin, stdout, stop }: CommandContext): CommandGroup[] {
  const shared = { addresses, topicPrefix: config.TOPIC_PREFIX, stop };
  const loadDemo = async () => [(await import('./demo.ts')).createDemoCommand(stores, { ...shared, addresses })];
  const loadLog = async () => (await import('./log-commands.ts')).createLogCommands(stores, shared);
  const loadFeed = async () => {
    const { createFeedCommands } = await import('./feed-commands.ts');
    return createFeedCommands(stores, { ...shared, stdin, stdout, folder });
  };
  return [
    { names: ['demo'], load: loadDemo },
    { names: ['verify', 'trace', 'derive', 'offsets', 'dead-letters'], load: loadLog },
    { names: ['chain', 'import', 'replicate'], load: loadFeed },
  ];
}
