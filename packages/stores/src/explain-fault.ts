export type StoreName = 'Kafka' | 'ClickHouse' | 'Redis' | 'the schema registry';

export interface ConnectionFault {
  /** What failed and which setting to correct; without secrets. */
  readonly message: string;
  /** True when no retry helps until a person changes a setting or the store. */
  readonly isRefusal: boolean;
}

const SETTINGS: Record<StoreName, { prefix: string; address: string; tls: string; login: string }> = {
  Kafka: {
    prefix: 'KAFKA',
    address: 'KAFKA_BROKERS',
    tls: 'KAFKA_TLS',
    login: 'KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD',
  },
  ClickHouse: {
    prefix: 'CLICKHOUSE',
    address: 'CLICKHOUSE_URL',
    tls: 'CLICKHOUSE_URL (https or http)',
    login: 'CLICKHOUSE_USER and CLICKHOUSE_PASSWORD',
  },
  Redis: {
    prefix: 'REDIS',
    address: 'REDIS_URL',
    tls: 'REDIS_URL (rediss or redis)',
    login: 'user and password in REDIS_URL',
  },
  'the schema registry': {
    prefix: 'SCHEMA_REGISTRY',
    address: 'SCHEMA_REGISTRY_URL',
    tls: 'SCHEMA_REGISTRY_URL (https or http)',
    login: 'SCHEMA_REGISTRY_USERNAME and SCHEMA_REGISTRY_PASSWORD',
  },
};

/** OpenSSL's codes for an untrusted certificate chain. */
const UNTRUSTED = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'CERT_REVOKED',
  'INVALID_CA',
]);
const OUT_OF_DATE = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID']);
/** ClickHouse codes: unknown user, missing password, authentication failed. */
const LOGIN_CODES = new Set(['192', '194', '516']);
/** ClickHouse code: the account lacks a grant. */
const DENIED_CODES = new Set(['497']);
const LOGIN_STATUS = new Set([401, 403]);
const DEPTH_MAX = 8;

interface Part {
  readonly name: string;
  readonly code: string;
  /** Kafka's error name: `type` of kafkajs, `apiId` of @platformatic/kafka. */
  readonly type: string;
  readonly message: string;
  readonly reason: string;
  readonly status: number | null;
}

function partsOf(fault: unknown, depth = 0): Part[] {
  if (typeof fault !== 'object' || fault === null || depth > DEPTH_MAX) return [];
  const fields = fault as Record<string, unknown>;
  const text = (name: string) =>
    typeof fields[name] === 'string' || typeof fields[name] === 'number' ? String(fields[name]) : '';
  const part: Part = {
    name: text('name'),
    code: text('code'),
    type: text('type') || text('apiId'),
    message: text('message'),
    reason: text('reason'),
    status: typeof fields.status === 'number' ? fields.status : null,
  };
  const causes = [fields.cause, fields.originalError, ...(Array.isArray(fields.errors) ? fields.errors : [])];
  return [part, ...causes.flatMap((each) => partsOf(each, depth + 1))];
}

function explainTls(store: StoreName, parts: readonly Part[]): string | null {
  const { prefix, address, tls } = SETTINGS[store];
  for (const { code, reason, message } of parts) {
    if (UNTRUSTED.has(code))
      return `its certificate is not signed by an authority trusted here (${code}): set ${prefix}_TLS_CA_FILE to the certificate of the authority that signed it`;
    if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
      const found = reason === '' ? code : reason.replace(/[\s.:]+$/, '');
      return `its certificate is for another host name (${found}): use one of its names in ${address}, or set ${prefix}_TLS_SERVER_NAME`;
    }
    if (OUT_OF_DATE.has(code))
      return `its certificate is not valid now (${code}): renew it at the store, or correct the clock`;
    if (/^ERR_SSL_.*ALERT/.test(code))
      return `it ended the TLS handshake (${code}): check ${prefix}_TLS_CERT_FILE and ${prefix}_TLS_KEY_FILE, and ${prefix}_TLS_SERVER_NAME`;
    if (code === 'EPROTO' || code.startsWith('ERR_SSL_') || message.startsWith('TLS handshake failed.'))
      return `it does not speak TLS there: correct ${tls}, or the port in ${address}`;
    if (message === 'Broker requires TLS.') return `it speaks TLS there: set ${tls} to true`;
  }
  return null;
}

function explainLogin(store: StoreName, parts: readonly Part[]): string | null {
  const { login, prefix } = SETTINGS[store];
  const refused = (code: string) => `it refuses the login (${code}): correct ${login}`;
  for (const [i, { name, code, type, message, status }] of parts.entries()) {
    if (type === 'UNSUPPORTED_SASL_MECHANISM' || /^SASL \S+ mechanism is not supported/.test(message))
      return `it does not offer this way to log in: correct ${prefix}_SASL_MECHANISM`;
    if (type === 'ILLEGAL_SASL_STATE')
      return `it expects no login there: remove ${prefix}_SASL_MECHANISM, or correct the port`;
    const causes = parts.slice(i + 1);
    // A connection that broke during the login is not a refusal.
    const isBroken = causes.some((part) => part.code === 'PLT_KFK_NETWORK' || part.code === 'PLT_KFK_TIMEOUT');
    if (type === 'SASL_AUTHENTICATION_FAILED' || name === 'KafkaJSSASLAuthenticationError')
      return refused('SASL authentication failed');
    if (code === 'PLT_KFK_AUTHENTICATION' && !isBroken && causes.every((part) => part.type === ''))
      return refused('SASL authentication failed');
    const [, word] = /^(WRONGPASS|NOAUTH)\b/.exec(message) ?? [];
    if (store === 'Redis' && word !== undefined) return refused(word);
    if (store === 'Redis' && message.startsWith('NOPERM'))
      return `the user in REDIS_URL lacks a permission (NOPERM): widen what its ACL allows`;
    if (store === 'ClickHouse' && LOGIN_CODES.has(code)) return refused(code);
    if (store === 'ClickHouse' && DENIED_CODES.has(code))
      return `the account lacks a permission (${code}): grant it to CLICKHOUSE_USER`;
    if (status !== null && LOGIN_STATUS.has(status)) return refused(`HTTP ${status}`);
  }
  return null;
}

const WRITE_REFUSALS: Readonly<Record<string, string>> = {
  OOM: 'it is full: raise its maxmemory, or delete data',
  MISCONF: 'it cannot write its own file: free space on its disk, or repair it',
  READONLY: 'it is a replica: REDIS_URL must lead to the primary',
  NOREPLICAS: 'too few of its replicas are in sync: repair them',
};

function explainUnusable(store: StoreName, parts: readonly Part[]): string | null {
  if (store !== 'Redis') return null;
  for (const { name, message } of parts) {
    const [word = ''] = /^[A-Z]+\b/.exec(message) ?? [];
    if (Object.hasOwn(WRITE_REFUSALS, word)) return `Redis takes no writes (${word}): ${WRITE_REFUSALS[word]}`;
    if (name === 'MissingEpochFault')
      return 'Redis has no identities and consents, because it is new or has lost them: run npm run rebuild (npm run identity -- init for a new deployment)';
  }
  return null;
}

/**
 * Explains why a store cannot be used, with codes and setting names. Messages from the client or the server are not
 * included, except the host names in a certificate.
 */
export function explainConnection(store: StoreName, fault: unknown): ConnectionFault {
  const parts = partsOf(fault);
  const refusal = explainTls(store, parts) ?? explainLogin(store, parts);
  if (refusal !== null) return { message: `${store} cannot be used: ${refusal}`, isRefusal: true };
  const unusable = explainUnusable(store, parts);
  if (unusable !== null) return { message: unusable, isRefusal: true };
  const code = parts.findLast((part) => /^E[A-Z]+$/.test(part.code))?.code;
  return { message: `${store} does not answer${code === undefined ? '' : ` (${code})`}`, isRefusal: false };
}
