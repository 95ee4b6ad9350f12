import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSignerPublicKey, type SignerPublicKey } from '@playline/access-keys';
import { chainNodes, type IndexedChain } from '@playline/chain';
import { type KafkaSecurity, settings, toClickHouse, toKafka, toRedis, toRegistry } from '@playline/runtime';
import {
  type ClickHouseAccount,
  type ConnectionFaults,
  createConnectionFaults,
  type StoreFetch,
} from '@playline/stores';
import { z } from 'zod';
import { UnreachableError, UsageError } from './command.ts';
import type { OperatorConfig } from './config.ts';

const keyPair = z.object({ publishable: z.string(), secret: z.string() });

/** The part of `.playline/stack.json` that commands use; services that do not run are absent. */
const stackSchema = z.object({
  gateway: z.string().optional(),
  chainApi: z.string().optional(),
  portal: z.string().optional(),
  chains: z.array(z.object({ name: z.string(), id: z.string() })).optional(),
  chain: z
    .object({
      rpc: z.string(),
      contracts: z.object({ erc721: z.string(), erc1155: z.string(), erc20: z.string() }).optional(),
      signer: z.string().optional(),
    })
    .optional(),
  clickhouse: z.object({ url: z.string(), user: z.string(), password: z.string(), database: z.string() }).optional(),
  redis: z.string().optional(),
  kafka: z.array(z.string()).optional(),
  registry: z.string().optional(),
  signerPublicKey: z.string().optional(),
  keys: z.object({ production: keyPair, development: keyPair }).optional(),
});

/** The part of `.playline/secrets.json` that commands use. */
const secretsSchema = z.object({ identityPepper: settings.secretHex(32) });

export type Stack = z.infer<typeof stackSchema>;

/** The stack that runs from `folder`; an empty object without a stack. @throws UnreachableError for an invalid file */
export function readStack(folder: string): Stack {
  const path = join(folder, '.playline', 'stack.json');
  const parsed = stackSchema.safeParse(readJson(path) ?? {});
  if (!parsed.success) throw new UnreachableError(`${path} is invalid: start the stack again (npm run up)`);
  return parsed.data;
}

/** The pepper of the stack in `folder`; null without a stack. @throws UnreachableError for an invalid file */
function readStackPepper(folder: string): Buffer | null {
  const path = join(folder, '.playline', 'secrets.json');
  const secrets = readJson(path);
  if (secrets === undefined) return null;
  const parsed = secretsSchema.safeParse(secrets);
  if (!parsed.success) throw new UnreachableError(`${path} contains no pepper: start the stack again (npm run up)`);
  return parsed.data.identityPepper;
}

/** Undefined without the file, null for invalid JSON. */
function readJson(path: string): unknown {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

type FaultHandler = { readonly onFault: (fault: unknown) => void };

type KafkaAddress = { readonly brokers: readonly string[]; readonly security?: KafkaSecurity };
type RegistryAddress = { readonly url: string; readonly fetch?: StoreFetch };

export interface ChainApiAddress {
  /** Without `/v1`. */
  readonly url: string;
  readonly chains: readonly { readonly name: string; readonly id: string }[];
}

/**
 * Addresses and secrets of one deployment. Each function throws UnreachableError when nothing is configured, or
 * UsageError when the environment configures a deployment without this setting.
 */
export interface Addresses {
  redis(): ReturnType<typeof toRedis> & FaultHandler;
  kafka(): KafkaAddress & FaultHandler;
  registry(): RegistryAddress & FaultHandler;
  clickhouse(): ClickHouseAccount;
  /** Null unless the local stack is used: the address has no setting. */
  chainApi(): ChainApiAddress | null;
  indexedChains(): readonly IndexedChain[];
  /** Names of the chains that the chain API serves; null when CHAINS is not set. */
  servedChains(): readonly string[] | null;
  /** Origin of the local stack's portal; null without a local stack. */
  portal(): string | null;
  pepper(): Buffer;
  signerKey(): SignerPublicKey;
}

function isDeploymentGiven({ KAFKA_BROKERS, SCHEMA_REGISTRY_URL, REDIS_URL, CLICKHOUSE_URL }: OperatorConfig): boolean {
  return [KAFKA_BROKERS, SCHEMA_REGISTRY_URL, REDIS_URL, CLICKHOUSE_URL].some((value) => value !== undefined);
}

/**
 * The addresses in the environment if it has any, otherwise those of the stack in `folder`. The two are never mixed: a
 * command could then write to the log of one deployment and the Redis of another.
 */
export function createAddresses(
  config: OperatorConfig,
  folder: string,
  faults: ConnectionFaults = createConnectionFaults({ warn: () => {} }),
): Addresses {
  const isGiven = isDeploymentGiven(config);
  const stack = () => readStack(folder);
  const [onRedis, onKafka, onRegistry] = [
    faults.listenerOf('Redis'),
    faults.listenerOf('Kafka'),
    faults.listenerOf('the schema registry'),
  ];
  function find<V, A>(name: string, given: V | undefined, parse: (value: V) => A, fromStack: () => A | undefined): A {
    const fromEnvironment = () => (given === undefined ? undefined : parse(given));
    const address = isGiven ? fromEnvironment() : fromStack();
    if (address !== undefined) return address;
    throw new UnreachableError(
      isGiven
        ? `${name} is not set, but other addresses are`
        : `no stack runs here: start it (npm run up) or set ${name}`,
    );
  }
  const findRedis = (url: string) => toRedis({ ...config, REDIS_URL: url });
  const findKafka = (brokers: string[]): KafkaAddress => toKafka({ ...config, KAFKA_BROKERS: brokers });
  const findRegistry = (url: string): RegistryAddress => toRegistry({ ...config, SCHEMA_REGISTRY_URL: url });
  const findClickHouse = (url: string): ClickHouseAccount => toClickHouse({ ...config, CLICKHOUSE_URL: url });
  const toUrl = (url: string | undefined) => (url === undefined ? undefined : { url });
  return {
    redis: () => ({
      ...find('REDIS_URL', config.REDIS_URL, findRedis, () => toUrl(stack().redis)),
      onFault: onRedis,
    }),
    kafka: () => ({
      ...find('KAFKA_BROKERS', config.KAFKA_BROKERS, findKafka, () => {
        const { kafka: brokers } = stack();
        return brokers === undefined ? undefined : { brokers };
      }),
      onFault: onKafka,
    }),
    registry: () => ({
      ...find('SCHEMA_REGISTRY_URL', config.SCHEMA_REGISTRY_URL, findRegistry, () => toUrl(stack().registry)),
      onFault: onRegistry,
    }),
    clickhouse: () => ({
      ...find('CLICKHOUSE_URL', config.CLICKHOUSE_URL, findClickHouse, () => stack().clickhouse),
      onFault: faults.listenerOf('ClickHouse'),
    }),
    chainApi: () => (isGiven ? null : findChainApi(folder)),
    indexedChains: () => findIndexedChains(config, folder),
    servedChains: () => (isGiven ? config.CHAINS : stack().chains?.map(({ name }) => name)) ?? null,
    portal: () => (isGiven ? null : (stack().portal ?? null)),
    pepper: () => findPepper(config, folder),
    signerKey: () => findSignerKey(config, folder),
  };
}

function findChainApi(folder: string): ChainApiAddress {
  const { chainApi: url, chains = [] } = readStack(folder);
  if (url === undefined)
    throw new UnreachableError('no stack with a chain API runs here: start it (npm run up) or pass --url');
  return { url, chains };
}

function findIndexedChains(config: OperatorConfig, folder: string): readonly IndexedChain[] {
  if (isDeploymentGiven(config)) {
    if (config.CHAIN_NODES !== undefined) return config.CHAIN_NODES;
    throw new UsageError('CHAIN_NODES is not set: use the value of the chain indexer and the minter');
  }
  const { chain, chains = [] } = readStack(folder);
  if (chain === undefined)
    throw new UnreachableError(
      'no stack with a chain runs here: start it (npm run up), or set the addresses of a deployment',
    );
  return chainNodes().parse(JSON.stringify(chains.slice(0, 1).map((each) => ({ ...each, urls: [chain.rpc] }))));
}

/** Never the pepper of another deployment, with which all keys would be unknown. */
function findPepper(config: OperatorConfig, folder: string): Buffer {
  const pepper = isDeploymentGiven(config) ? config.IDENTITY_PEPPER : readStackPepper(folder);
  if (pepper instanceof Buffer) return pepper;
  if (!isDeploymentGiven(config))
    throw new UnreachableError('no stack runs here: start it (npm run up) or set REDIS_URL and IDENTITY_PEPPER');
  throw new UsageError(
    'IDENTITY_PEPPER is not set, and ids cannot be converted to keys: use the value of the gateways, or pass --key',
  );
}

/** Never the key of another deployment: its own signer could not decrypt what is sealed to that key. */
function findSignerKey(config: OperatorConfig, folder: string): SignerPublicKey {
  if (isDeploymentGiven(config)) {
    if (config.SIGNER_PUBLIC_KEY !== undefined) return config.SIGNER_PUBLIC_KEY;
    throw new UsageError('SIGNER_PUBLIC_KEY is not set: without it no private key can be sealed to the signer');
  }
  const { signerPublicKey } = readStack(folder);
  if (signerPublicKey !== undefined) return parseSignerPublicKey(signerPublicKey);
  throw new UnreachableError('no stack with a signer runs here: start it (npm run up) or set SIGNER_PUBLIC_KEY');
}
