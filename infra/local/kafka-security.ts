// TLS and logins of the local Kafka broker.
import { pbkdf2Sync, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { Admin, alterUserScramCredentialsV0, type Connection, kGetConnection } from '@platformatic/kafka';
import { toKeyStore } from './certificates.ts';
import { writePrivateFile } from './private-file.ts';
import type { Account, StackSecurity } from './security.ts';

/** The client listener of a stack with TLS and logins. */
export const SECURED_LISTENER = 'SECURED';
const LOGIN_MODULES = 'org.apache.kafka.common.security';
/** Short, so that clients must log in again during every run, as with managed brokers. */
const SESSION_MS = '20000';
/** The minimum number of iterations that brokers accept. */
const ITERATIONS = 4096;
/** SCRAM mechanisms with their numbers in the Kafka protocol. */
const SCRAM = [
  { mechanism: 1, digest: 'sha256', bytes: 32 },
  { mechanism: 2, digest: 'sha512', bytes: 64 },
] as const;

export function securedListenerSettings(
  listeners: readonly string[],
  { folder, security }: { folder: string; security: StackSecurity },
): Record<string, string> {
  const keyStore = join(folder, 'server.key-store.pem');
  writePrivateFile(keyStore, toKeyStore(security.server));
  const { username, password } = security.kafka;
  const settings = {
    'ssl.keystore.type': 'PEM',
    'ssl.keystore.location': keyStore,
    'connections.max.reauth.ms': SESSION_MS,
    'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
    'plain.sasl.jaas.config': `${LOGIN_MODULES}.plain.PlainLoginModule required user_${username}="${password}";`,
    'scram-sha-256.sasl.jaas.config': `${LOGIN_MODULES}.scram.ScramLoginModule required;`,
    'scram-sha-512.sasl.jaas.config': `${LOGIN_MODULES}.scram.ScramLoginModule required;`,
  };
  return Object.fromEntries(
    listeners.flatMap((listener) =>
      Object.entries(settings).map(([name, value]) => [`listener.name.${listener.toLowerCase()}.${name}`, value]),
    ),
  );
}

/** Creates or changes a SCRAM user for both digests. @param broker `host:port` of a listener that permits it */
export async function setScramPassword(broker: string, { username, password }: Account): Promise<void> {
  const [host = '', port] = broker.split(':');
  const admin = new Admin({ clientId: 'playline-users', bootstrapBrokers: [broker], retries: 1 });
  try {
    const connection = await new Promise<Connection>((resolve, reject) => {
      const onOpen = (error: Error | null, opened?: Connection) => (error === null ? resolve(opened!) : reject(error));
      admin[kGetConnection](
        { host, port: Number(port) },
        onOpen as Parameters<(typeof admin)[typeof kGetConnection]>[1],
      );
    });
    // One request may contain a user only once.
    for (const { mechanism, digest, bytes } of SCRAM) {
      const salt = randomBytes(32);
      const saltedPassword = pbkdf2Sync(password, salt, ITERATIONS, bytes, digest);
      const credential = { name: username, mechanism, iterations: ITERATIONS, salt, saltedPassword };
      await alterUserScramCredentialsV0.api.async(connection, [], [credential]);
    }
  } finally {
    await admin.close();
  }
}
