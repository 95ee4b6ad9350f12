import { createRpcNode } from '@playline/chain/rpc';
import { schemaSubjectOf } from '@playline/contracts';
import { openAdminServer } from '@playline/http';
import {
  createLogger,
  createMetrics,
  openTracing,
  parseConfig,
  runService,
  toKafka,
  toRegistry,
} from '@playline/runtime';
import { createConnectionFaults } from '@playline/stores';
import { createSchemaRegistry, openAtomicPublisher, openLogReader } from '@playline/stream/kafka';
import { configSchema } from './config.ts';
import { openIndexLogs } from './log/open-index-logs.ts';
import { startLanes } from './pipeline.ts';
import type { RunningLane } from './run-lane.ts';

const SERVICE = 'chain-indexer';
const config = parseConfig(configSchema, process.env);
const logger = createLogger({ service: SERVICE, level: config.LOG_LEVEL });
const metrics = createMetrics(SERVICE);
const faults = createConnectionFaults(logger);
const kafka = { ...toKafka(config, logger), onFault: faults.listenerOf('Kafka') };
const registry = createSchemaRegistry({ ...toRegistry(config), onFault: faults.listenerOf('the schema registry') });
const chains = config.CHAIN_NODES;

await runService(logger, async (use) => {
  const tracing = await openTracing(use, { service: SERVICE, config, logger });
  let lanes: readonly RunningLane[] = [];
  const laneOf = (name: string) => lanes.find(({ chain }) => chain === name);
  const checks = (isTrue: (lane: RunningLane) => boolean) =>
    Object.fromEntries(
      chains.map(({ name }) => {
        const check = () => {
          const lane = laneOf(name);
          return lane !== undefined && isTrue(lane);
        };
        return [name, check];
      }),
    );
  const reasons = () => ({
    ...faults.reasons(),
    ...Object.fromEntries(lanes.flatMap(({ chain, reason }) => (reason === null ? [] : [[chain, reason]]))),
  });
  const [ready, degraded] = [checks(({ isWorking }) => isWorking), checks(({ isAdvancing }) => isAdvancing)];
  await use('admin listener', () =>
    openAdminServer({ host: config.ADMIN_HOST, port: config.ADMIN_PORT, ready, degraded, reasons, metrics }),
  );
  const logs = await use('logs', () =>
    openIndexLogs({
      openPublisher: (name) => openAtomicPublisher({ ...kafka, name }),
      log: openLogReader({ ...kafka, clientId: SERVICE }),
      schemaIdOf: (topic, schema) => registry.idOf(schemaSubjectOf(topic), schema),
      schemaOf: registry.schemaOf,
      topicPrefix: config.TOPIC_PREFIX,
      tracing,
    }),
  );
  if (chains.length === 0) logger.info('no chains configured: set CHAIN_NODES');
  lanes = await startLanes({ chains, createNode: (node) => createRpcNode(node), logs, metrics, logger, use });
});
