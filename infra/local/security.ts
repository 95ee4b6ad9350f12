// TLS and logins for the stores of a stack.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createStoreFetch, type StoreFetch } from '@playline/stores';
import { type CertificateFiles, createAuthority } from './certificates.ts';
import type { StackPaths } from './paths.ts';
import type { Secrets } from './secrets.ts';

export interface Account {
  readonly username: string;
  readonly password: string;
}

export interface StackSecurity {
  readonly caFile: string;
  readonly server: CertificateFiles;
  readonly kafka: Account;
  readonly redis: Account;
  readonly registry: Account;
}

const HOSTS = ['localhost', '127.0.0.1'];
const USERNAME = 'playline';

/** Creates the certificates, unless they exist. @throws Error if openssl is missing */
export function createSecurity(paths: StackPaths, secrets: Secrets): StackSecurity {
  const authority = createAuthority(join(paths.state, 'tls'), 'authority of a Playline stack');
  return {
    caFile: authority.certificate,
    server: authority.issue('server', HOSTS),
    kafka: { username: USERNAME, password: secrets.kafkaPassword },
    redis: { username: USERNAME, password: secrets.redisPassword },
    registry: { username: USERNAME, password: secrets.registryPassword },
  };
}

/** Returns the settings for services and commands. */
export function securitySettings({
  caFile,
  kafka,
  registry,
}: Pick<StackSecurity, 'caFile' | 'kafka' | 'registry'>): Record<string, string> {
  return {
    KAFKA_TLS: 'true',
    KAFKA_TLS_CA_FILE: caFile,
    KAFKA_SASL_MECHANISM: 'SCRAM-SHA-512',
    KAFKA_SASL_USERNAME: kafka.username,
    KAFKA_SASL_PASSWORD: kafka.password,
    REDIS_TLS_CA_FILE: caFile,
    CLICKHOUSE_TLS_CA_FILE: caFile,
    SCHEMA_REGISTRY_TLS_CA_FILE: caFile,
    SCHEMA_REGISTRY_USERNAME: registry.username,
    SCHEMA_REGISTRY_PASSWORD: registry.password,
  };
}

/** Returns a `fetch` that trusts the stack's certificate authority and sends the login, if any. */
export function createStackFetch(caFile: string, login?: Account): StoreFetch {
  const user = login === undefined ? undefined : { user: login.username, password: login.password };
  return createStoreFetch({ tls: { ca: readFileSync(caFile, 'utf8') }, login: user });
}
