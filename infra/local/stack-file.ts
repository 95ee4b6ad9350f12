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

/** The chain of a stack, and the demo project's objects on it. */
export interface DemoChain {
  /** `http://127.0.0.1:port`; also answers at `ws://`. */
  rpc: string;
  id: number;
  /** Addresses of the demo contracts, lower case. */
  contracts: Readonly<Record<DemoContract, string>>;
  /** Address of the demo project's signable key, which may mint there. */
  signer: string;
}

/**
 * Everything that scripts need to know about a running stack: `.playline/stack.json`. Parts that do not run are absent.
 */
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
  /** SIGNER_PUBLIC_KEY, with which private keys of addresses are sealed: base64url of a JWK. */
  signerPublicKey?: string;
  /** The chains that the chain API serves. */
  chains?: ServedChain[];
  /** The stack's chain; absent when the stack was started without one. */
  chain?: DemoChain;
  /** The operator's account, which may do everything. */
  clickhouse: { url: string; user: string; password: string; database: string };
  /** With its password: `redis://:password@127.0.0.1:port` */
  redis: string;
  /** `host:port` of each broker */
  kafka: string[];
  /** Confluent-compatible address, without a trailing slash. */
  registry: string;
  /** For a stack with TLS and logins: the authority to trust, and logins that are not part of an address. */
  security?: { caFile: string; kafka: Account; registry: Account };
  /** Keys of the demo project; '' for a revoked key. */
  keys?: { production: KeyPair; development: KeyPair };
  /** Ids of the processes themselves, never of a wrapper. A name is absent while its process is down. */
  processes: Record<string, number>;
}

/** The header of a publishable key, as this stack's gateway expects it. */
export function publishableKeyHeaderOf({ settings }: StackFile): string {
  return `${settings?.HTTP_HEADER_PREFIX ?? 'x-service'}-publishable-key`;
}

/** The header of a secret key. */
export function secretKeyHeaderOf({ settings }: StackFile): string {
  return `${settings?.HTTP_HEADER_PREFIX ?? 'x-service'}-api-key`;
}

/** Settings with names that all parts of one deployment must share. */
const SHARED_SETTINGS = ['TOPIC_PREFIX', 'HTTP_HEADER_PREFIX', 'ACCESS_KEY_PREFIX', 'LINK_TOPIC_GENERATION'];

/** The settings in an environment that commands need too. */
export function sharedSettingsOf(environment: Record<string, string | undefined>): Record<string, string> {
  const given = SHARED_SETTINGS.map((name) => [name, environment[name]] as const);
  return Object.fromEntries(given.filter((pair): pair is [string, string] => pair[1] !== undefined));
}

export function stackFilePath(places: StackPaths): string {
  return join(places.state, 'stack.json');
}

/** The stack's file, or null when no stack is recorded. It may be outdated after a crash: see `findSupervisor`. */
export function readStackFile(places: StackPaths): StackFile | null {
  return readJsonFile(stackFilePath(places), '`npm run down`, then `npm run up` writes it anew') as StackFile | null;
}

/** Replaces the file by rename, with mode 0600 because it contains passwords and secret keys. */
export function writeStackFile(places: StackPaths, file: StackFile): void {
  writePrivateFile(stackFilePath(places), `${JSON.stringify(file, null, 2)}\n`);
}

export function removeStackFile(places: StackPaths): void {
  rmSync(stackFilePath(places), { force: true });
}
