import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { DemoContract } from '../chain/demo.ts';
import type { ServedChain } from './chain-settings.ts';
import type { Places } from './places.ts';
import { readJsonFile, writePrivateFile } from './private-file.ts';
import type { Account } from './security.ts';

export interface KeyPair {
  publishable: string;
  secret: string;
}

/** The chain of a stack, and what the demo project has on it. */
export interface DemoChain {
  /** `http://127.0.0.1:port`; `ws://` answers there too. */
  rpc: string;
  id: number;
  /** Addresses of the demo contracts, lower case. */
  contracts: Readonly<Record<DemoContract, string>>;
  /** Address of the demo project's signable key that may mint there. */
  signer: string;
}

/** What scripts need to know of a running stack: `.playline/stack.json`. Parts that do not run are absent. */
export interface StackFile {
  /** `http://127.0.0.1:port` */
  gateway?: string;
  chainApi?: string;
  /** `http://localhost:port`: it answers under that name alone. */
  portal?: string;
  /** Of each service: where `/livez`, `/readyz` and `/metrics` answer. */
  admin?: Record<string, string>;
  /** What commands beside the stack must be told as its services were: names of topics, headers and keys. */
  settings?: Record<string, string>;
  /** What private keys of addresses are sealed to: SIGNER_PUBLIC_KEY, as base64url of a JWK. */
  signerPublicKey?: string;
  /** What the chain API serves. */
  chains?: ServedChain[];
  /** The stack's own chain; absent in one that was started without. */
  chain?: DemoChain;
  /** The operator's account, which may do everything. */
  clickhouse: { url: string; user: string; password: string; database: string };
  /** With its password: `redis://:password@127.0.0.1:port` */
  redis: string;
  /** `host:port` of each broker */
  kafka: string[];
  /** Confluent-compatible address, without a trailing slash. */
  registry: string;
  /** Of a stack whose stores want TLS and a login: what is trusted, and the logins that no address holds. */
  security?: { caFile: string; kafka: Account; registry: Account };
  /** Of the demo project; '' for a key that was revoked. */
  keys?: { production: KeyPair; development: KeyPair };
  /** Ids of the processes themselves, never of a wrapper; a name is absent while its process is down. */
  processes: Record<string, number>;
}

/** The header that a publishable key stands in, as this stack's gateway wants it. */
export function publishableKeyHeaderOf({ settings }: StackFile): string {
  return `${settings?.HTTP_HEADER_PREFIX ?? 'x-service'}-publishable-key`;
}

/** The header that a secret key stands in. */
export function secretKeyHeaderOf({ settings }: StackFile): string {
  return `${settings?.HTTP_HEADER_PREFIX ?? 'x-service'}-api-key`;
}

/** Settings that say what the parts of one deployment call things: who talks to it must call them the same. */
const SHARED_SETTINGS = ['TOPIC_PREFIX', 'HTTP_HEADER_PREFIX', 'ACCESS_KEY_PREFIX', 'LINK_TOPIC_GENERATION'];

/** Of an environment, the settings that commands beside the stack need too. */
export function sharedSettingsOf(environment: Record<string, string | undefined>): Record<string, string> {
  const given = SHARED_SETTINGS.map((name) => [name, environment[name]] as const);
  return Object.fromEntries(given.filter((pair): pair is [string, string] => pair[1] !== undefined));
}

export function stackFilePath(places: Places): string {
  return join(places.state, 'stack.json');
}

/** The stack's file, or null when no stack is recorded. It may be stale after a crash: see `findSupervisor`. */
export function readStackFile(places: Places): StackFile | null {
  return readJsonFile(stackFilePath(places), '`npm run down`, then `npm run up` writes it anew') as StackFile | null;
}

/** Replaces the file by rename, mode 0600: it holds passwords and secret keys. */
export function writeStackFile(places: Places, file: StackFile): void {
  writePrivateFile(stackFilePath(places), `${JSON.stringify(file, null, 2)}\n`);
}

export function removeStackFile(places: Places): void {
  rmSync(stackFilePath(places), { force: true });
}
