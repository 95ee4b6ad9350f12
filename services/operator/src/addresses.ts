import { parseSignerPublicKey, type SignerPublicKey } from '@playline/access-keys';
import { chainNodes, type IndexedChain } from '@playline/chain';
import { type KafkaSecurity, toClickHouse, toKafka, toRedis, toRegistry } from '@playline/runtime';
import { type ClickHouseAccount, type ConnectionFaults, createConnectionFaults, type StoreFetch } from '@playline/stores';
import { UnreachableError, UsageError } from './command.ts';
import type { OperatorConfig } from './config.ts';
import { readStack, readStackPepper } from './stack-file.ts';

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
  /** Null unless the local stack is used: there is no setting for it. */
  chainApi(): ChainApiAddress | null;
  indexedChains(): readonly IndexedChain[];
  /** Names of the chains of the chain API; null when CHAINS is not set. */
  servedChains(): readonly string[] | null;
  /** Origin of the local stack's portal; null without one. */
  portal(): string | null;
  pepper(): Buffer;
  signerKey(): SignerPublicKey;
}

function isDeploymentGiven({ KAFKA_BROKERS, SCHEMA_REGISTRY_URL, REDIS_URL, CLICKHOUSE_URL }: OperatorConfig): boolean {
  return [KAFKA_BROKERS, SCHEMA_REGISTRY_URL, REDIS_URL, CLICKHOUSE_URL].some((value) => value !== undefined);
}

/**
 * The environment's addresses when it has any, otherwise those of the stack in `folder`. They are never mixed, since a
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
  function find<V, A>(name: string, given: V | undefined, parse: (value: V) => A, ofStack: () => A | undefined): A {
    const ofEnvironment = () => (given === undefined ? undefined : parse(given));
    const address = isGiven ? ofEnvironment() : ofStack();
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
    throw new UsageError('CHAIN_NODES is not set: use the value of chain indexer and minter');
  }
  const { chain, chains = [] } = readStack(folder);
  if (chain === undefined)
    throw new UnreachableError(
      'no stack with a chain runs here: start it (npm run up), or set the addresses of a deployment',
    );
  return chainNodes().parse(JSON.stringify(chains.slice(0, 1).map((each) => ({ ...each, urls: [chain.rpc] }))));
}

/** Never the pepper of another deployment, whose keys would all be unknown. */
function findPepper(config: OperatorConfig, folder: string): Buffer {
  const pepper = isDeploymentGiven(config) ? config.IDENTITY_PEPPER : readStackPepper(folder);
  if (pepper instanceof Buffer) return pepper;
  if (!isDeploymentGiven(config))
    throw new UnreachableError('no stack runs here: start it (npm run up) or set REDIS_URL and IDENTITY_PEPPER');
  throw new UsageError(
    'IDENTITY_PEPPER is not set, and ids cannot be converted to keys: use the value of the gateways, or pass --key',
  );
}

/** Never the key of another deployment, whose signer could not decrypt what is sealed to it. */
function findSignerKey(config: OperatorConfig, folder: string): SignerPublicKey {
  if (isDeploymentGiven(config)) {
    if (config.SIGNER_PUBLIC_KEY !== undefined) return config.SIGNER_PUBLIC_KEY;
    throw new UsageError('SIGNER_PUBLIC_KEY is not set: without it no private key can be sealed to the signer');
  }
  const { signerPublicKey } = readStack(folder);
  if (signerPublicKey !== undefined) return parseSignerPublicKey(signerPublicKey);
  throw new UnreachableError('no stack with a signer runs here: start it (npm run up) or set SIGNER_PUBLIC_KEY');
}
