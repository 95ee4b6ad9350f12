import { randomBytes } from 'node:crypto';
import { ACCESS_KEYS, createProject, DEFAULT_ENVIRONMENTS, PROJECTS, setAlertTargets } from '@playline/access-keys';
import { openRedisKeyUsage } from '@playline/access-keys/redis';
import { openRedisAlerts } from '@playline/alerts/redis';
import { type AuditEntryRecord, auditEntryCodec, FRAME_BYTES, TOPICS } from '@playline/contracts';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import { createLogger, type Metrics } from '@playline/runtime';
import { createSchemaRegistry, openLogReader, openProducer } from '@playline/stream/kafka';
import { openRedisDatabase, type RedisDatabase, testStores, until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { createPipelineStatus } from '../pipeline-status.ts';
import { createAudit, type LogParts } from '../stores/portal-records.ts';
import { createMemoryPortalRecords } from '../test/open-portal.ts';
import { openTestReads, type TestReads, toSqlTime } from '../test/test-reads.ts';
import { createAlertDelivery } from './delivery.ts';
import { openAlertEvaluator } from './evaluator.ts';
import { readAlertReadings } from './readings.ts';
import { findAlerts } from './rules.ts';
import { openMailReceiver, openWebhookReceiver } from './test/receivers.ts';

const topicPrefix = `test-${randomBytes(4).toString('hex')}.`;
const { kafka: brokers, registry } = testStores();
const EVERY_MS = 300;
const SECRET = 'the-webhook-secret';
const author = { changedBy: 'ada', requestId: 'r' };
const lines: string[] = [];
const logger = createLogger({ service: 'portal', level: 'info' }, { write: (line: string) => lines.push(line) });

let redis: RedisDatabase;
let clickhouse: TestReads;
let log: LogParts & { producer: Awaited<ReturnType<typeof openProducer>> };

beforeAll(async () => {
  redis = await openRedisDatabase();
  clickhouse = await openTestReads();
  await applyTopics({ brokers, registry, prefix: topicPrefix, partitions: 1 });
  const producer = await openProducer({ brokers, clientId: 'test', topics: [topicPrefix + TOPICS.audit.name] });
  const reader = openLogReader({ brokers, clientId: 'test' });
  log = { producer, reader, registry: createSchemaRegistry({ url: registry }), topicPrefix, logger };
  return async () => {
    await producer.close();
    await reader.close();
  };
});
afterAll(async () => {
  await dropTopics({ brokers, registry, prefix: topicPrefix });
  await clickhouse.close();
  await redis.close();
});

const projects = createMemoryPortalRecords(PROJECTS);

/** Opens the parts of a portal process that evaluate and deliver alerts. */
async function openProcess(smtpPort: number) {
  const store = openRedisAlerts({ url: redis.url });
  const usage = await openRedisKeyUsage({ url: redis.url });
  const onFault = (error: unknown, message: string) => logger.warn({ error }, message);
  const parts = { projects, keys: createMemoryPortalRecords(ACCESS_KEYS), usage, reads: clickhouse.reads, onFault };
  const readings = { ...parts, pipeline: createPipelineStatus(log) };
  const config = {
    PORTAL_SECRET: Buffer.alloc(32, 1),
    SMTP_URL: `smtp://127.0.0.1:${smtpPort}`,
    SMTP_FROM: 'alerts@example.com',
    ALERT_PRIVATE_WEBHOOKS: true,
  };
  let evaluations = 0;
  const counter = { inc: () => void evaluations++ };
  const evaluator = openAlertEvaluator({
    store,
    projects,
    onFault,
    everyMs: EVERY_MS,
    findAlerts: async (nowMs, signal) => findAlerts(await readAlertReadings(readings, nowMs, signal)),
    delivery: createAlertDelivery({ config, origin: new URL('https://portal.example'), pausesMs: [10, 10] }),
    audit: createAudit(log),
    metrics: { counter: () => counter } as unknown as Pick<Metrics, 'counter'>,
  });
  let closing: Promise<void> | null = null;
  const close = async () => {
    await evaluator.close();
    await Promise.all([store.close(), usage.close()]);
  };
  const opened = { store, evaluations: () => evaluations, close: () => (closing ??= close()) };
  onTestFinished(opened.close);
  return opened;
}

async function readEntries(): Promise<AuditEntryRecord[]> {
  const topic = topicPrefix + TOPICS.audit.name;
  const entries: AuditEntryRecord[] = [];
  for (const { partition, start, end } of await log.reader.bounds(topic))
    for await (const { value } of log.reader.read({ topic, partition, start, end }))
      if (value !== null) entries.push(auditEntryCodec.decode(value.subarray(FRAME_BYTES)));
  return entries;
}

const AT_MS = Date.now() - 3_600_000;
const toMint = (environmentId: string, changes: object) => ({
  environment_id: environmentId,
  chain: 'main',
  contract: 'c'.repeat(20),
  requested_at: toSqlTime(AT_MS),
  reference_id: 'asset',
  attempt_id: 'a'.repeat(16),
  project_id: 'demo',
  signer: 's'.repeat(20),
  owner: 'o'.repeat(20),
  changed_at: toSqlTime(AT_MS),
  ...changes,
});

it('two portals deliver and record each change of an alert once, also if they restart', async () => {
  const [webhook, mail] = [
    await openWebhookReceiver((request) => (request === 1 ? 503 : 200)),
    await openMailReceiver(),
  ];
  const context = { store: projects.storeFor(author) };
  const project = await createProject(context, { name: 'Game', environments: DEFAULT_ENVIRONMENTS });
  const targets = { alertWebhook: `http://127.0.0.1:${webhook.port}/${SECRET}`, alertEmails: ['ada@example.com'] };
  await setAlertTargets(context, project.id, targets);
  const environmentId = `${project.id}-production`;
  await clickhouse.insert('mint_requests', [
    toMint(environmentId, { status: 'pending', stage: 'waiting', revision: 0 }),
  ]);

  const processes = [await openProcess(mail.port), await openProcess(mail.port)];
  const states = () => webhook.received.map(({ body }) => JSON.parse(body).state as string);
  // The first attempt is repeated.
  await until('the alert is delivered', () => states().length === 2 && mail.received.length === 1);
  expect(JSON.parse(webhook.received[1]!.body)).toMatchObject({
    state: 'fired',
    rule: 'MintsPending',
    text: '1 mint request pending for more than 30 minutes.',
    environment: { id: environmentId, name: 'production' },
  });
  await Promise.all(processes.map(({ close }) => close()));

  const restarted = await openProcess(mail.port);
  await until('the restarted portal has evaluated the rules', () => restarted.evaluations() > 3);
  await clickhouse.insert('mint_requests', [
    toMint(environmentId, { status: 'succeeded', stage: 'settled', revision: 1 }),
  ]);
  await until('the alert has cleared', () => mail.received.length === 2);
  await until('the change is settled', async () => (await redis.client.keys('alerts:queue:*')).length === 0);
  expect(states()).toEqual(['fired', 'fired', 'cleared']);
  expect(await restarted.store.read()).toEqual([]);

  const entries = await readEntries();
  const scope = { projectId: project.id, environmentId, object: 'MintsPending', actor: '' };
  expect(entries).toMatchObject([
    { action: 'alert.fired', ...scope },
    { action: 'alert.cleared', ...scope },
  ]);
  for (const text of [lines.join(), JSON.stringify(entries)]) expect(text).not.toMatch(new RegExp(`${SECRET}|ada@`));
});

it('an alert whose delivery fails is recorded with the reason, without the URL', async () => {
  const mail = await openMailReceiver();
  const webhook = await openWebhookReceiver(() => 500);
  const context = { store: projects.storeFor(author) };
  const project = await createProject(context, { name: 'Failing', environments: DEFAULT_ENVIRONMENTS });
  await setAlertTargets(context, project.id, {
    alertWebhook: `http://127.0.0.1:${webhook.port}/${SECRET}`,
    alertEmails: [],
  });
  const environmentId = `${project.id}-development`;
  await clickhouse.insert('mint_requests', [
    toMint(environmentId, { attempt_id: 'f'.repeat(16), status: 'pending', stage: 'waiting', revision: 0 }),
  ]);
  await openProcess(mail.port);
  const ownEntries = async () => (await readEntries()).filter(({ projectId }) => projectId === project.id);
  const entries = await until('the failure is recorded', async () => {
    const found = await ownEntries();
    return found.length === 2 ? found : null;
  });
  expect(webhook.received).toHaveLength(3);
  const failed = entries.find(({ action }) => action === 'alert.delivery-failed');
  expect(JSON.parse(failed?.detail ?? '{}')).toEqual({ channel: 'webhook', reason: 'status 500', of: 'fired' });
  expect(lines.join()).not.toContain(SECRET);
});
