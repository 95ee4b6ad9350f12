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

/** The fields of `.playline/stack.json` that commands use. Services that are not running are absent. */
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
  clickhouse: z
    .object({
      url: z.string(),
      user: z.string(),
      password: z.string(),
      database: z.string(),
      cluster: z.object({ name: z.string(), urls: z.array(z.string()) }).optional(),
    })
    .optional(),
  redis: z.string().optional(),
  /** IDENTITY_CELLS of a stack with a Redis Cluster. */
  redisCells: z.number().optional(),
  kafka: z.array(z.string()).optional(),
  registry: z.string().optional(),
  signerPublicKey: z.string().optional(),
  keys: z.object({ production: keyPair, development: keyPair }).optional(),
});

/** The fields of `.playline/secrets.json` that commands use. */
const secretsSchema = z.object({ identityPepper: settings.secretHex(32) });

export type Stack = z.infer<typeof stackSchema>;

/** Reads the stack that is running in `folder`; empty if there is none. @throws UnreachableError for an invalid file */
export function readStack(folder: string): Stack {
  const path = join(folder, '.playline', 'stack.json');
  const parsed = stackSchema.safeParse(readJson(path) ?? {});
  if (!parsed.success) throw new UnreachableError(`${path} is invalid: start the stack again (npm run up)`);
  return parsed.data;
}

/** Reads the pepper of the stack in `folder`; null if there is none. @throws UnreachableError for an invalid file */
function readStackPepper(folder: string): Buffer | null {
  const path = join(folder, '.playline', 'secrets.json');
  const secrets = readJson(path);
  if (secrets === undefined) return null;
  const parsed = secretsSchema.safeParse(secrets);
  if (!parsed.success) throw new UnreachableError(`${path} contains no pepper: start the stack again (npm run up)`);
  return parsed.data.identityPepper;
}

/** Returns undefined for a missing file, and null for invalid JSON. */
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

/** @throws UsageError for a cluster, whose other nodes the command would ignore */
export function assertSingleServer(account: ClickHouseAccount, command: string): ClickHouseAccount {
  if (account.cluster === undefined) return account;
  throw new UsageError(
    `${command} does not support a cluster of ClickHouse. Use ClickHouse's own statements on each node`,
  );
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
 * Addresses and secrets of one deployment. Each function throws UnreachableError or UsageError if its address or secret
 * is not configured.
 */
export interface Addresses {
  redis(): ReturnType<typeof toRedis> & FaultHandler;
  kafka(): KafkaAddress & FaultHandler;
  registry(): RegistryAddress & FaultHandler;
  clickhouse(): ClickHouseAccount;
  /** Null unless the local stack is used, because no setting contains this address. */
  chainApi(): ChainApiAddress | null;
  indexedChains(): readonly IndexedChain[];
  /** Chains with nodes; empty if none are configured. */
  nodes(): readonly IndexedChain[];
  /** Names of the chains that the chain API serves, or null if CHAINS is not set. */
  servedChains(): readonly string[] | null;
  /** Origin of the local stack's portal; null if no local stack is used. */
  portal(): string | null;
  pepper(): Buffer;
  signerKey(): SignerPublicKey;
}

const ADDRESSES = ['KAFKA_BROKERS', 'SCHEMA_REGISTRY_URL', 'REDIS_URL', 'CLICKHOUSE_URL'] as const;
const isDeploymentConfigured = (config: OperatorConfig) => ADDRESSES.some((name) => config[name] !== undefined);

/**
 * Uses the addresses in the environment if any are set, otherwise the stack in `folder`. The two are never mixed, so
 * that a command cannot write to the log of one deployment and the Redis of another.
 */
export function createAddresses(
  config: OperatorConfig,
  folder: string,
  faults: ConnectionFaults = createConnectionFaults({ warn: () => {} }),
): Addresses {
  const isConfigured = isDeploymentConfigured(config);
  const stack = () => readStack(folder);
  function find<V, A>(name: string, value: V | undefined, parse: (value: V) => A, fromStack: () => A | undefined): A {
    const fromEnvironment = () => (value === undefined ? undefined : parse(value));
    const address = isConfigured ? fromEnvironment() : fromStack();
    if (address !== undefined) return address;
    throw new UnreachableError(
      isConfigured
        ? `${name} is not set, although other addresses are set`
        : `no local stack is running: start it (npm run up), or set ${name}`,
    );
  }
  const findRedis = (url: string) => toRedis({ ...config, REDIS_URL: url });
  const findKafka = (brokers: string[]): KafkaAddress => toKafka({ ...config, KAFKA_BROKERS: brokers });
  const findRegistry = (url: string): RegistryAddress => toRegistry({ ...config, SCHEMA_REGISTRY_URL: url });
  const findClickHouse = (url: string): ClickHouseAccount => toClickHouse({ ...config, CLICKHOUSE_URL: url });
  const toUrl = (url: string | undefined) => (url === undefined ? undefined : { url });
  return {
    redis: () => ({
      ...find('REDIS_URL', config.REDIS_URL, findRedis, () => findStackRedis(stack())),
      onFault: faults.listenerOf('Redis'),
    }),
    kafka: () => ({
      ...find('KAFKA_BROKERS', config.KAFKA_BROKERS, findKafka, () => {
        const { kafka: brokers } = stack();
        return brokers === undefined ? undefined : { brokers };
      }),
      onFault: faults.listenerOf('Kafka'),
    }),
    registry: () => ({
      ...find('SCHEMA_REGISTRY_URL', config.SCHEMA_REGISTRY_URL, findRegistry, () => toUrl(stack().registry)),
      onFault: faults.listenerOf('the schema registry'),
    }),
    clickhouse: () => ({
      ...find('CLICKHOUSE_URL', config.CLICKHOUSE_URL, findClickHouse, () => stack().clickhouse),
      onFault: faults.listenerOf('ClickHouse'),
    }),
    chainApi: () => (isConfigured ? null : findChainApi(folder)),
    indexedChains: () => findIndexedChains(config, folder),
    nodes: () => {
      if (isConfigured) return config.CHAIN_NODES ?? [];
      return stack().chain === undefined ? [] : findIndexedChains(config, folder);
    },
    servedChains: () => (isConfigured ? config.CHAINS : stack().chains?.map(({ name }) => name)) ?? null,
    portal: () => (isConfigured ? null : (stack().portal ?? null)),
    pepper: () => findPepper(config, folder),
    signerKey: () => findSignerKey(config, folder),
  };
}

function findStackRedis({ redis: url, redisCells: cells }: Stack): ReturnType<typeof toRedis> | undefined {
  if (url === undefined) return undefined;
  return cells === undefined ? { url } : { url, cells, cluster: true };
}

function findChainApi(folder: string): ChainApiAddress {
  const { chainApi: url, chains = [] } = readStack(folder);
  if (url === undefined)
    throw new UnreachableError('no local chain API is running: start the stack (npm run up), or pass --url');
  return { url, chains };
}

function findIndexedChains(config: OperatorConfig, folder: string): readonly IndexedChain[] {
  if (isDeploymentConfigured(config)) {
    if (config.CHAIN_NODES !== undefined) return config.CHAIN_NODES;
    throw new UsageError('CHAIN_NODES is not set: set it to the value that the chain indexer and the minter use');
  }
  const { chain, chains = [] } = readStack(folder);
  if (chain === undefined)
    throw new UnreachableError(
      'no local chain is running: start the stack (npm run up), or set the addresses of a deployment',
    );
  return chainNodes().parse(JSON.stringify(chains.slice(0, 1).map((each) => ({ ...each, urls: [chain.rpc] }))));
}

/** Never falls back to another deployment's pepper, which would produce wrong keys. */
function findPepper(config: OperatorConfig, folder: string): Buffer {
  const pepper = isDeploymentConfigured(config) ? config.IDENTITY_PEPPER : readStackPepper(folder);
  if (pepper instanceof Buffer) return pepper;
  if (!isDeploymentConfigured(config))
    throw new UnreachableError(
      'no local stack is running: start it (npm run up), or set REDIS_URL and IDENTITY_PEPPER',
    );
  throw new UsageError(
    'IDENTITY_PEPPER is not set: set it to the value that the gateways use, or pass --key instead of --id',
  );
}

/** Never falls back to another deployment's key, because this deployment's signer could not decrypt the result. */
function findSignerKey(config: OperatorConfig, folder: string): SignerPublicKey {
  if (isDeploymentConfigured(config)) {
    if (config.SIGNER_PUBLIC_KEY !== undefined) return config.SIGNER_PUBLIC_KEY;
    throw new UsageError(
      "SIGNER_PUBLIC_KEY is not set: set it to the signer's public key, which encrypts private keys",
    );
  }
  const { signerPublicKey } = readStack(folder);
  if (signerPublicKey !== undefined) return parseSignerPublicKey(signerPublicKey);
  throw new UnreachableError('no local signer is running: start the stack (npm run up), or set SIGNER_PUBLIC_KEY');
}
