import {
  ACCESS_KEYS,
  ACCOUNTS,
  type AuditLog,
  type Change,
  COLLECTIONS,
  createAnalystStore,
  createPasswords,
  openRoleFollower,
  PROJECTS,
  RATE_LIMIT_KEYS,
  RECORD_KINDS,
  type RecordKind,
  SIGNABLE_KEYS,
} from '@playline/access-keys';
import { createPasskeys } from '@playline/access-keys/passkeys';
import { openRedisKeyUsage, openRedisRecords, openRedisSessions, RedisSharing } from '@playline/access-keys/redis';
import { openRedisAlerts } from '@playline/alerts/redis';
import { createReadCode } from '@playline/chain/read-code';
import { TOPICS } from '@playline/contracts';
import { DEMO_TOPICS } from '@playline/demo-game';
import { type HttpServer, openAdminServer, openHttpServer } from '@playline/http';
import { createIdentityKeyer } from '@playline/people';
import { openRedisPeople } from '@playline/people/redis';
import {
  createLogger,
  createMetrics,
  openTracing,
  parseConfig,
  runService,
  toClickHouse,
  toKafka,
  toRedis,
  toRegistry,
  type Use,
} from '@playline/runtime';
import { assertCluster, createConnectionFaults, createQueryRows, WrongCluster } from '@playline/stores';
import { createSchemaRegistry, openLogReader, openProducer } from '@playline/stream/kafka';
import { createAlertDelivery } from './alerts/delivery.ts';
import { openAlertEvaluator } from './alerts/evaluator.ts';
import { type ReadingParts, readAlertReadings } from './alerts/readings.ts';
import { findAlerts } from './alerts/rules.ts';
import { createPortalApp } from './app.ts';
import { configSchema, toOpenId, toSettings } from './config.ts';
import { createPortalLimiters } from './frame/limiters.ts';
import { openLive } from './live/index.ts';
import { measureQueries } from './metrics.ts';
import { createDemoLoader } from './pages/demo/loader.ts';
import { createPipelineStatus } from './pipeline-status.ts';
import { createPortalReads, READ_MAX_MS } from './reads/index.ts';
import { createPortalPeople } from './stores/people.ts';
import { createAudit, type LogParts, openPortalRecords } from './stores/portal-records.ts';

const SERVICE = 'portal';
const PRODUCT = 'Playline';
const config = parseConfig(configSchema, process.env);
const logger = createLogger({ service: SERVICE, level: config.LOG_LEVEL });
const metrics = createMetrics(SERVICE);
const faults = createConnectionFaults(logger);
const kafka = { ...toKafka(config, logger), onFault: faults.listenerOf('Kafka'), clientId: SERVICE };
const redis = { ...toRedis(config), onFault: faults.listenerOf('Redis'), sharing: new RedisSharing() };
const clickhouse = { ...toClickHouse(config), onFault: faults.listenerOf('ClickHouse') };
const query = measureQueries(metrics, createQueryRows(clickhouse, { deadlineMs: READ_MAX_MS, isReadonly: true }));
const openId = toOpenId(config);
const onProviderFault = (fault: string) => logger.warn({ fault }, 'request to the OpenID Connect provider failed');
const { HTTP_HOST, HTTP_PORT, ADMIN_HOST, ADMIN_PORT, TOPIC_PREFIX: topicPrefix, WRITER_GROUP: writerGroup } = config;
const { CLICKHOUSE_ACCOUNTS_PASSWORD: password, ANALYST_ACCOUNTS: pool = [] } = config;
const accountsAccount = password === undefined ? null : { ...clickhouse, user: 'accounts', password };
const analysts = accountsAccount && createAnalystStore(accountsAccount, pool);
const origin = new URL(config.PORTAL_ORIGIN ?? `http://localhost:${HTTP_PORT}`);
const limiters = createPortalLimiters();
const reads = createPortalReads(limiters.limitQueries(query));
const registry = createSchemaRegistry({ ...toRegistry(config), onFault: faults.listenerOf('the schema registry') });
const keyOf = createIdentityKeyer(config.IDENTITY_PEPPER);
const onFault = (error: unknown, message: string) => logger.warn({ error }, message);
const onRoleFault = (error: unknown) => onFault(error, 'cannot compare credentials with roles; retrying');
const otherTopics = [TOPICS.audit.name, TOPICS.erasures.name, ...DEMO_TOPICS];
const topics = [...RECORD_KINDS.map(({ topic }) => topic), ...otherTopics].map((topic) => topicPrefix + topic);

async function openAllRecords(use: Use, log: LogParts) {
  const open = <R extends Change>(kind: RecordKind<R>) =>
    use(kind.name, async () => openPortalRecords({ ...log, view: await openRedisRecords(kind, redis) }));
  return {
    keys: await open(ACCESS_KEYS),
    accounts: await open(ACCOUNTS),
    projects: await open(PROJECTS),
    rateLimitKeys: await open(RATE_LIMIT_KEYS),
    collections: await open(COLLECTIONS),
    signableKeys: await open(SIGNABLE_KEYS),
  };
}

async function openRoles(use: Use, records: Awaited<ReturnType<typeof openAllRecords>>, audit: AuditLog) {
  if (accountsAccount === null || analysts === null) return;
  await assertCluster(accountsAccount).catch((fault: unknown) => {
    // Pages also work without ClickHouse. Each change of credentials checks the cluster again.
    if (fault instanceof WrongCluster) throw fault;
  });
  await use('roles', () => openRoleFollower({ ...records, store: analysts, audit, onFault: onRoleFault }));
}

async function openAlerts(use: Use, parts: ReadingParts, audit: AuditLog) {
  const store = await use('alerts', async () => openRedisAlerts(redis));
  const delivery = createAlertDelivery({ config, origin });
  const findAll = async (nowMs: number, signal: AbortSignal) =>
    findAlerts(await readAlertReadings(parts, nowMs, signal));
  const { projects } = parts;
  await use('alert evaluator', async () =>
    openAlertEvaluator({ store, delivery, projects, findAlerts: findAll, audit, metrics, onFault }),
  );
  return { store, delivery };
}

await runService(logger, async (use) => {
  const tracing = await openTracing(use, { service: SERVICE, config, logger });
  const producer = await use('producer', () => openProducer({ ...kafka, topics, logger }));
  const reader = await use('log reader', () => openLogReader(kafka));
  const log = { producer, reader, registry, topicPrefix, logger };
  const signIns = await use('sessions', () => openRedisSessions(redis));
  const records = await openAllRecords(use, log);
  const graph = await use('people', () => openRedisPeople({ ...redis, commandTimeoutMs: 2_000 }));
  const { ERASURE_CLOCK_SKEW_MS: clockSkewMs } = config;
  const people = createPortalPeople({ ...log, people: graph, keyOf, clockSkewMs, onFault });
  const usage = await use('key usage', () => openRedisKeyUsage(redis));
  const live = await use('live messages', () =>
    openLive({ ...log, log: openLogReader(kafka), schemaOf: registry.schemaOf, query, writerGroup }),
  );
  const audit = createAudit(log);
  await openRoles(use, records, audit);
  const pipeline = createPipelineStatus(log);
  const alerts = await openAlerts(use, { ...records, usage, reads, pipeline, onFault }, audit);
  let server: HttpServer | null = null;
  // If Kafka is unavailable or a record cannot be read, pages work but changes fail.
  const inSync = Object.entries(records).map(([name, kind]) => [name, () => kind.isInSync] as const);
  await use('admin listener', () =>
    openAdminServer({
      host: ADMIN_HOST,
      port: ADMIN_PORT,
      reasons: faults.reasons,
      metrics,
      ready: { accepting: () => server?.state === 'open', sessions: signIns.ready },
      degraded: { changes: () => producer.ready(), ...Object.fromEntries(inSync) },
    }),
  );
  const app = createPortalApp({
    config,
    logger,
    metrics,
    tracing,
    origin,
    limiters,
    ...records,
    passwords: createPasswords({ productName: PRODUCT }),
    passkeys: createPasskeys({ name: PRODUCT, origin: origin.origin }),
    // The module is loaded only if a provider is configured.
    openIdProvider:
      openId &&
      (await import('@playline/access-keys/open-id')).createOpenIdProvider({ ...openId, onFault: onProviderFault }),
    sessions: signIns.sessions,
    oneTimeTokens: signIns.oneTimeTokens,
    usage,
    people,
    reads,
    live,
    demo: createDemoLoader({ ...log, keyOf, consents: graph.consents, onFault }),
    audit,
    analysts,
    readCode: createReadCode(config.CHAIN_NODES),
    settings: toSettings(config),
    pipeline,
    alerts,
  });
  // Opened last and therefore closed first, so that the stores stay open until all requests have completed.
  server = await use('listener', () => openHttpServer({ app, host: HTTP_HOST, port: HTTP_PORT }));
});
