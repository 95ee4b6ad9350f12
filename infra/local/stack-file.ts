// `stack.json`: what scripts and commands need to know about a running stack.
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

/** The demo project's objects on the stack's chain. */
export interface DemoChain {
  /** `http://127.0.0.1:port`; also answers at `ws://`. */
  rpc: string;
  id: number;
  /** Addresses of the demo contracts, lower case. */
  contracts: Readonly<Record<DemoContract, string>>;
  /** The demo project's signable key, which may mint. */
  signer: string;
}

/** Parts that do not run are absent. */
export interface StackFile {
  /** `http://127.0.0.1:port` */
  gateway?: string;
  chainApi?: string;
  /** `http://localhost:port`, because it answers only under that name. */
  portal?: string;
  /** For each service the address of `/livez`, `/readyz` and `/metrics`. */
  admin?: Record<string, string>;
  /** Settings that commands must share with the stack's services: names of topics, headers and keys. */
  settings?: Record<string, string>;
  /** SIGNER_PUBLIC_KEY, which seals private keys: base64url of a JWK. */
  signerPublicKey?: string;
  chains?: ServedChain[];
  chain?: DemoChain;
  /** The operator's account. */
  clickhouse: { url: string; user: string; password: string; database: string };
  /** With its password: `redis://:password@127.0.0.1:port` */
  redis: string;
  /** `host:port` of each broker */
  kafka: string[];
  /** Confluent-compatible, without a trailing slash. */
  registry: string;
  /** The authority and the logins of a stack with TLS. */
  security?: { caFile: string; kafka: Account; registry: Account };
  /** Keys of the demo project; '' for a revoked key. */
  keys?: { production: KeyPair; development: KeyPair };
  /** Absent while a process is down. */
  processes: Record<string, number>;
}

export type StackAddresses = Pick<StackFile, 'clickhouse' | 'redis' | 'kafka' | 'registry' | 'security'>;

export const publishableKeyHeaderOf = ({ settings }: StackFile): string =>
  `${settings?.HTTP_HEADER_PREFIX ?? 'x-service'}-publishable-key`;

export const secretKeyHeaderOf = ({ settings }: StackFile): string =>
  `${settings?.HTTP_HEADER_PREFIX ?? 'x-service'}-api-key`;

/** Settings that services and commands must share. */
const SHARED_SETTINGS = ['TOPIC_PREFIX', 'HTTP_HEADER_PREFIX', 'ACCESS_KEY_PREFIX', 'LINK_TOPIC_GENERATION'];

export function sharedSettingsOf(environment: Record<string, string | undefined>): Record<string, string> {
  const given = SHARED_SETTINGS.map((name) => [name, environment[name]] as const);
  return Object.fromEntries(given.filter((pair): pair is [string, string] => pair[1] !== undefined));
}

export const stackFilePath = (paths: StackPaths): string => join(paths.state, 'stack.json');

/** Null when no stack is recorded. It may be outdated after a crash: see `findSupervisor`. */
export const readStackFile = (paths: StackPaths): StackFile | null =>
  readJsonFile(stackFilePath(paths), 'run `npm run down`, then `npm run up`') as StackFile | null;

export function writeStackFile(paths: StackPaths, file: StackFile): void {
  writePrivateFile(stackFilePath(paths), `${JSON.stringify(file, null, 2)}\n`);
}

export function removeStackFile(paths: StackPaths): void {
  rmSync(stackFilePath(paths), { force: true });
}
