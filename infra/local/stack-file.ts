// The file `stack.json`, which describes a running stack for scripts and commands.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { DemoContract } from '../chain/demo.ts';
import type { ServedChain } from './chain.ts';
import type { StackPaths } from './paths.ts';
import { readJsonFile, writePrivateFile } from './private-file.ts';
import type { Account } from './security.ts';

export interface KeyPair {
  publishable: string;
  secret: string;
}

/** The demo project's objects on the chain. */
export interface DemoChain {
  /** `http://127.0.0.1:port`; WebSocket connections use `ws://`. */
  rpc: string;
  id: number;
  /** Addresses of the demo contracts in lower case. */
  contracts: Readonly<Record<DemoContract, string>>;
  /** Address of the demo project's signable key, which may mint. */
  signer: string;
}

/** Members of components that are not running are absent. */
export interface StackFile {
  /** `http://127.0.0.1:port` */
  gateway?: string;
  chainApi?: string;
  /** `http://localhost:port`; the portal responds only under that host name. */
  portal?: string;
  /** URLs of the second processes in a cluster by process name, for example `gateway-2`. */
  others?: Record<string, string>;
  /** Base URL of `/livez`, `/readyz` and `/metrics` per process of a service. */
  admin?: Record<string, string>;
  /** Settings that commands must share with the services: topic, header and key prefixes. */
  settings?: Record<string, string>;
  /** SIGNER_PUBLIC_KEY, which encrypts private keys: a base64url-encoded JWK. */
  signerPublicKey?: string;
  chains?: ServedChain[];
  chain?: DemoChain;
  /** The operator account. */
  clickhouse: {
    url: string;
    user: string;
    password: string;
    database: string;
    /** Absent with one node. */
    cluster?: { readonly name: string; readonly urls: readonly string[] };
  };
  /** URL with the password: `redis://:password@127.0.0.1:port`; in a cluster, with the addresses of all nodes. */
  redis: string;
  /** IDENTITY_CELLS; absent with one server. */
  redisCells?: number;
  /** `host:port` of each broker */
  kafka: string[];
  /** URL of the Confluent-compatible API, without a trailing slash. */
  registry: string;
  /** Certificate authority and logins of a stack with TLS. */
  security?: { caFile: string; kafka: Account; registry: Account };
  /** Keys of the demo project; '' for a revoked key. */
  keys?: { production: KeyPair; development: KeyPair };
  /** Process ids by name, without processes that are down. */
  processes: Record<string, number>;
}

export type StackAddresses = Pick<StackFile, 'clickhouse' | 'redis' | 'redisCells' | 'kafka' | 'registry' | 'security'>;

/** Returns the settings for the nodes of a cluster. */
export const clusterSettings = ({
  clickhouse: { cluster },
  redisCells = 0,
}: StackAddresses): Record<string, string> => ({
  IDENTITY_CELLS: String(redisCells),
  ...(redisCells > 0 && { REDIS_CLUSTER: 'true' }),
  ...(cluster && { CLICKHOUSE_CLUSTER: cluster.name, CLICKHOUSE_SHARD_URLS: cluster.urls.join() }),
});

export const publishableKeyHeaderOf = ({ settings }: StackFile): string =>
  `${settings?.HTTP_HEADER_PREFIX ?? 'x-service'}-publishable-key`;

export const secretKeyHeaderOf = ({ settings }: StackFile): string =>
  `${settings?.HTTP_HEADER_PREFIX ?? 'x-service'}-api-key`;

/** Settings that services and commands must share. */
const SHARED_SETTINGS = ['TOPIC_PREFIX', 'HTTP_HEADER_PREFIX', 'ACCESS_KEY_PREFIX', 'LINK_TOPIC_GENERATION'];

export function sharedSettingsOf(environment: Record<string, string | undefined>): Record<string, string> {
  const pairs = SHARED_SETTINGS.map((name) => [name, environment[name]] as const);
  return Object.fromEntries(pairs.filter((pair): pair is [string, string] => pair[1] !== undefined));
}

export const stackFilePath = (paths: StackPaths): string => join(paths.state, 'stack.json');

/** @returns null if the file does not exist. After a crash, the file may be outdated: see `findSupervisor`. */
export const readStackFile = (paths: StackPaths): StackFile | null =>
  readJsonFile(stackFilePath(paths), 'run `npm run down`, then `npm run up`') as StackFile | null;

export function writeStackFile(paths: StackPaths, file: StackFile): void {
  writePrivateFile(stackFilePath(paths), `${JSON.stringify(file, null, 2)}\n`);
}

export function removeStackFile(paths: StackPaths): void {
  rmSync(stackFilePath(paths), { force: true });
}
