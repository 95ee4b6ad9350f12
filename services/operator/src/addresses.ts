import { parseSignerPublicKey, type SignerPublicKey } from '@playline/access-keys';
import { chainNodes, type IndexedChain } from '@playline/chain';
import { type KafkaSecurity, toClickHouse, toKafka, toRedis, toRegistry } from '@playline/runtime';
import type { ClickHouseAccount, StoreFetch, TlsOptions } from '@playline/stores';
import { type ConnectionFaults, createConnectionFaults } from '@playline/stores';
import { UnreachableError, UsageError } from './command.ts';
import type { OperatorConfig } from './config.ts';
import { readStack, readStackPepper } from './stack-file.ts';

type FaultHandler = { readonly onFault: (fault: unknown) => void };

/** Options of a command's Redis clients. */
export interface RedisAddress extends FaultHandler {
  readonly url: string;
  readonly tls?: TlsOptions;
}

/** Options of a command's Kafka clients. */
export interface KafkaAddress extends FaultHandler {
  readonly brokers: readonly string[];
  readonly security?: KafkaSecurity;
}

/** Options of a command's requests to the schema registry. */
export interface RegistryAddress extends FaultHandler {
  readonly url: string;
  readonly fetch?: StoreFetch;
}

/** The chain interface, and the chains that it serves. */
export interface ChainApiAddress {
  /** Without `/v1`. */
  readonly url: string;
  readonly chains: readonly { readonly name: string; readonly id: string }[];
}

/** Addresses of the stores that a command uses; each function throws UnreachableError when none is configured. */
export interface Addresses {
  redis(): RedisAddress;
  kafka(): KafkaAddress;
  registry(): RegistryAddress;
  clickhouse(): ClickHouseAccount;
  /** Of the local stack; null when the environment configures a deployment, which has no setting for this address. */
  chainApi(): ChainApiAddress | null;
  /** Indexed chains and their nodes. @throws UsageError when a deployment is configured without this setting */
  indexedChains(): readonly IndexedChain[];
  /** Names of the chains that the chain interface serves; null: a deployment is configured without CHAINS. */
  servedChains(): readonly string[] | null;
  /** Origin of the local stack's portal; null when there is none, or the environment configures a deployment. */
  portal(): string | null;
  /** Secret of the deployment's identity keys. @throws UsageError when a deployment is configured without it */
  pepper(): Buffer;
  /** Public key that private keys are sealed to. @throws UsageError when a deployment is configured without it */
  signerKey(): SignerPublicKey;
}

/** Whether the environment configures a deployment: then the local stack is ignored. */
function isDeploymentGiven({ KAFKA_BROKERS, SCHEMA_REGISTRY_URL, REDIS_URL, CLICKHOUSE_URL }: OperatorConfig): boolean {
  return [KAFKA_BROKERS, SCHEMA_REGISTRY_URL, REDIS_URL, CLICKHOUSE_URL].some((value) => value !== undefined);
}

/** Finds a store's address in the environment, or that of the stack. */
type Find = <V, A>(
  name: string,
  given: V | undefined,
  ways: { given: (value: V) => A; ofStack: () => A | undefined },
) => A;

function createFind(config: OperatorConfig): Find {
  const isGiven = isDeploymentGiven(config);
  return (name, given, ways) => {
    const ofEnvironment = () => (given === undefined ? undefined : ways.given(given));
    const address = isGiven ? ofEnvironment() : ways.ofStack();
    if (address !== undefined) return address;
    throw new UnreachableError(
      isGiven
        ? `${name} is not set, but other addresses are`
        : `no stack runs here: start it (npm run up) or set ${name}`,
    );
  };
}

/**
 * The environment's addresses when it has any, otherwise those of the stack in `folder`. Never a mixture: that would
 * write to the log of one deployment and the Redis of another.
 * @param faults called with every fault of a connection
 */
export function createAddresses(
  config: OperatorConfig,
  folder: string,
  faults: ConnectionFaults = createConnectionFaults({ warn: () => {} }),
): Addresses {
  const { KAFKA_BROKERS, SCHEMA_REGISTRY_URL, REDIS_URL, CLICKHOUSE_URL } = config;
  const find = createFind(config);
  const stack = () => readStack(folder);
  const [onRedis, onKafka, onRegistry] = [
    faults.listenerOf('Redis'),
    faults.listenerOf('Kafka'),
    faults.listenerOf('the schema registry'),
  ];
  return {
    redis: () => ({
      ...find('REDIS_URL', REDIS_URL, {
        given: (url) => toRedis({ ...config, REDIS_URL: url }),
        ofStack: () => toUrl(stack().redis),
      }),
      onFault: onRedis,
    }),
    kafka: () => ({
      ...find<string[], Omit<KafkaAddress, 'onFault'>>('KAFKA_BROKERS', KAFKA_BROKERS, {
        given: (brokers) => toKafka({ ...config, KAFKA_BROKERS: brokers }),
        ofStack: () => toBrokers(stack().kafka),
      }),
      onFault: onKafka,
    }),
    registry: () => ({
      ...find<string, Omit<RegistryAddress, 'onFault'>>('SCHEMA_REGISTRY_URL', SCHEMA_REGISTRY_URL, {
        given: (url) => toRegistry({ ...config, SCHEMA_REGISTRY_URL: url }),
        ofStack: () => toUrl(stack().registry),
      }),
      onFault: onRegistry,
    }),
    clickhouse: () => ({
      ...find<string, ClickHouseAccount>('CLICKHOUSE_URL', CLICKHOUSE_URL, {
        given: (url) => toClickHouse({ ...config, CLICKHOUSE_URL: url }),
        ofStack: () => stack().clickhouse,
      }),
      onFault: faults.listenerOf('ClickHouse'),
    }),
    chainApi: () => (isDeploymentGiven(config) ? null : findChainApi(folder)),
    indexedChains: () => findIndexedChains(config, folder),
    servedChains: () =>
      isDeploymentGiven(config) ? (config.CHAINS ?? null) : (stack().chains?.map(({ name }) => name) ?? null),
    portal: () => (isDeploymentGiven(config) ? null : (stack().portal ?? null)),
    pepper: () => findPepper(config, folder),
    signerKey: () => findSignerKey(config, folder),
  };
}

function findChainApi(folder: string): ChainApiAddress {
  const { chainApi: url, chains = [] } = readStack(folder);
  if (url === undefined)
    throw new UnreachableError('no stack with a chain interface runs here: start it (npm run up) or give --url');
  return { url, chains };
}

function findIndexedChains(config: OperatorConfig, folder: string): readonly IndexedChain[] {
  if (isDeploymentGiven(config)) {
    if (config.CHAIN_NODES !== undefined) return config.CHAIN_NODES;
    throw new UsageError('CHAIN_NODES is not set: set it as chain indexer and minter have it');
  }
  const { chain, chains = [] } = readStack(folder);
  if (chain === undefined)
    throw new UnreachableError(
      'no stack with a chain runs here: start it (npm run up), or set the addresses of a deployment',
    );
  return chainNodes().parse(JSON.stringify(chains.slice(0, 1).map((each) => ({ ...each, urls: [chain.rpc] }))));
}

/**
 * The pepper of the deployment that the addresses belong to: with another pepper every id would give an unknown key.
 */
function findPepper(config: OperatorConfig, folder: string): Buffer {
  const pepper = isDeploymentGiven(config) ? config.IDENTITY_PEPPER : readStackPepper(folder);
  if (pepper instanceof Buffer) return pepper;
  if (!isDeploymentGiven(config))
    throw new UnreachableError('no stack runs here: start it (npm run up) or set REDIS_URL and IDENTITY_PEPPER');
  throw new UsageError(
    'IDENTITY_PEPPER is not set, and without it no id becomes a key: set it as the gateways have it, or give the key (--key)',
  );
}

/**
 * The signer's public key of the deployment that the addresses belong to: its signer cannot decrypt what was sealed to
 * another key.
 */
function findSignerKey(config: OperatorConfig, folder: string): SignerPublicKey {
  if (isDeploymentGiven(config)) {
    if (config.SIGNER_PUBLIC_KEY !== undefined) return config.SIGNER_PUBLIC_KEY;
    throw new UsageError('SIGNER_PUBLIC_KEY is not set, and without it no private key can be sealed to the signer');
  }
  const { signerPublicKey } = readStack(folder);
  if (signerPublicKey !== undefined) return parseSignerPublicKey(signerPublicKey);
  throw new UnreachableError('no stack with a signer runs here: start it (npm run up) or set SIGNER_PUBLIC_KEY');
}

const toUrl = (url: string | undefined) => (url === undefined ? undefined : { url });
const toBrokers = (brokers: string[] | undefined) => (brokers === undefined ? undefined : { brokers });
