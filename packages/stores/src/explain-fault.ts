export type StoreName = 'Kafka' | 'ClickHouse' | 'Redis' | 'the schema registry';

export interface ConnectionFault {
  /** What failed and which setting to correct, without secrets. */
  readonly message: string;
  /** True if retries cannot succeed until an operator changes a setting or the store. */
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

/** OpenSSL codes for an untrusted certificate chain. */
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
const EXPIRED_OR_EARLY = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID']);
/** ClickHouse error codes for an unknown user, a missing password and a failed authentication. */
const LOGIN_CODES = new Set(['192', '194', '516']);
/** ClickHouse error code for a missing grant. */
const DENIED_CODES = new Set(['497']);
const LOGIN_STATUS = new Set([401, 403]);
const DEPTH_MAX = 8;

interface ChainedFault {
  readonly name: string;
  readonly code: string;
  /** Kafka's error name: `type` in kafkajs, `apiId` in @platformatic/kafka. */
  readonly type: string;
  readonly message: string;
  readonly reason: string;
  readonly status: number | null;
}

function flattenCauses(fault: unknown, depth = 0): ChainedFault[] {
  if (typeof fault !== 'object' || fault === null || depth > DEPTH_MAX) return [];
  const fields = fault as Record<string, unknown>;
  const text = (name: string) =>
    typeof fields[name] === 'string' || typeof fields[name] === 'number' ? String(fields[name]) : '';
  const current: ChainedFault = {
    name: text('name'),
    code: text('code'),
    type: text('type') || text('apiId'),
    message: text('message'),
    reason: text('reason'),
    status: typeof fields.status === 'number' ? fields.status : null,
  };
  const causes = [fields.cause, fields.originalError, ...(Array.isArray(fields.errors) ? fields.errors : [])];
  return [current, ...causes.flatMap((each) => flattenCauses(each, depth + 1))];
}

function explainTls(store: StoreName, chain: readonly ChainedFault[]): string | null {
  const { prefix, address, tls } = SETTINGS[store];
  for (const { code, reason, message } of chain) {
    if (UNTRUSTED.has(code))
      return `its certificate is not signed by an authority trusted here (${code}): set ${prefix}_TLS_CA_FILE to the certificate of the authority that signed it`;
    if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
      const found = reason === '' ? code : reason.replace(/[\s.:]+$/, '');
      return `its certificate is for another host name (${found}): use one of its names in ${address}, or set ${prefix}_TLS_SERVER_NAME`;
    }
    if (EXPIRED_OR_EARLY.has(code))
      return `its certificate has expired or is not valid yet (${code}): renew it at the store, or correct the clock`;
    if (/^ERR_SSL_.*ALERT/.test(code))
      return `it aborted the TLS handshake (${code}): check ${prefix}_TLS_CERT_FILE and ${prefix}_TLS_KEY_FILE, and ${prefix}_TLS_SERVER_NAME`;
    if (code === 'EPROTO' || code.startsWith('ERR_SSL_') || message.startsWith('TLS handshake failed.'))
      return `it does not use TLS on this port: correct ${tls}, or the port in ${address}`;
    if (message === 'Broker requires TLS.') return `it requires TLS: set ${tls} to true`;
  }
  return null;
}

function explainLogin(store: StoreName, chain: readonly ChainedFault[]): string | null {
  const { login, prefix } = SETTINGS[store];
  const refused = (reason: string) => `it refuses the login (${reason}): correct ${login}`;
  for (const [i, { name, code, type, message, status }] of chain.entries()) {
    if (type === 'UNSUPPORTED_SASL_MECHANISM' || /^SASL \S+ mechanism is not supported/.test(message))
      return `it does not support this SASL mechanism: correct ${prefix}_SASL_MECHANISM`;
    if (type === 'ILLEGAL_SASL_STATE')
      return `it expects no login on this port: remove ${prefix}_SASL_MECHANISM, or correct the port`;
    const causes = chain.slice(i + 1);
    // A connection that broke during the login is not a refusal.
    const isBroken = causes.some((each) => each.code === 'PLT_KFK_NETWORK' || each.code === 'PLT_KFK_TIMEOUT');
    if (type === 'SASL_AUTHENTICATION_FAILED' || name === 'KafkaJSSASLAuthenticationError')
      return refused('SASL authentication failed');
    if (code === 'PLT_KFK_AUTHENTICATION' && !isBroken && causes.every((each) => each.type === ''))
      return refused('SASL authentication failed');
    const [, replyCode] = /^(WRONGPASS|NOAUTH)\b/.exec(message) ?? [];
    if (store === 'Redis' && replyCode !== undefined) return refused(replyCode);
    if (store === 'Redis' && message.startsWith('NOPERM'))
      return `the user in REDIS_URL lacks a permission (NOPERM): extend the ACL rules of this user`;
    if (store === 'ClickHouse' && LOGIN_CODES.has(code)) return refused(code);
    if (store === 'ClickHouse' && DENIED_CODES.has(code))
      return `the account lacks a permission (${code}): grant this permission to CLICKHOUSE_USER`;
    if (status !== null && LOGIN_STATUS.has(status)) return refused(`HTTP ${status}`);
  }
  return null;
}

const WRITE_REFUSALS: Readonly<Record<string, string>> = {
  OOM: 'it is full; raise its maxmemory, or delete data',
  MISCONF: 'it cannot write to its disk; free disk space, or repair the disk',
  READONLY: 'it is a replica; set REDIS_URL to the primary',
  NOREPLICAS: 'too few replicas are in sync; repair the replicas',
};

function explainUnusable(store: StoreName, chain: readonly ChainedFault[]): string | null {
  if (store === 'ClickHouse') return chain.find(({ code }) => code === 'WRONG_CLUSTER')?.message ?? null;
  if (store !== 'Redis') return null;
  for (const { name, message } of chain) {
    const [replyCode = ''] = /^[A-Z]+\b/.exec(message) ?? [];
    if (Object.hasOwn(WRITE_REFUSALS, replyCode))
      return `Redis rejects writes (${replyCode}): ${WRITE_REFUSALS[replyCode]}`;
    if (name === 'MissingEpochFault')
      return 'Redis contains no identities or consents: run npm run identity -- init for a new deployment, or npm run rebuild if Redis lost its data';
  }
  return null;
}

/**
 * Explains why a store cannot be used, with error codes and setting names. Messages from the client or the server are
 * omitted, except for the host names in a certificate.
 */
export function explainConnection(store: StoreName, fault: unknown): ConnectionFault {
  const chain = flattenCauses(fault);
  const refusal = explainTls(store, chain) ?? explainLogin(store, chain);
  if (refusal !== null) return { message: `${store} cannot be used: ${refusal}`, isRefusal: true };
  const unusable = explainUnusable(store, chain);
  if (unusable !== null) return { message: unusable, isRefusal: true };
  const code = chain.findLast((each) => /^E[A-Z]+$/.test(each.code))?.code;
  return { message: `${store} does not respond${code === undefined ? '' : ` (${code})`}`, isRefusal: false };
}
