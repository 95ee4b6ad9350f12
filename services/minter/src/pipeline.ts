import { activityIdOf } from '@playline/chain';
import {
  createRecordReader,
  type MintRequestRecord,
  mintRequestCodec,
  type SchemaSource,
  toSignerKey,
} from '@playline/contracts';
import type { Logger, Metrics, Tracing } from '@playline/runtime';
import { pause } from '@playline/stores';
import {
  type BatchHandler,
  type Consumer,
  type DeadLetter,
  type LogReader,
  type Producer,
  RetryableFault,
  type StreamRecord,
  sendDeadLetters,
} from '@playline/stream';
import { LaneWorker, LaneWorkers } from './lane/lane-worker.ts';
import { MintLane, type MintLaneParts } from './lane/mint-lane.ts';
import { createMintTraces, type MintTraces } from './mint-traces.ts';
import { createMinterMetrics, type MinterMetrics } from './minter-metrics.ts';
import type {
  ChainNode,
  ChainNodes,
  ChainRules,
  LaneClock,
  LaneSigner,
  MintLog,
  ReceivedRequest,
  SignerLane,
} from './ports.ts';

export interface MintedChain {
  /** In order of preference. */
  readonly nodes: readonly ChainNode[];
  readonly rules: ChainRules;
  readonly pollMs: number;
}

export interface MinterParts {
  /** Chains by name. */
  readonly chains: ReadonlyMap<string, MintedChain>;
  readonly log: MintLog;
  readonly signerOf: (lane: SignerLane) => LaneSigner;
  readonly isUnlinked: MintLaneParts['isUnlinked'];
  openConsumer(handler: BatchHandler): Promise<Consumer>;
  readonly producer: Producer;
  readonly reader: Pick<LogReader, 'bounds'>;
  readonly requestTopic: string;
  readonly schemaOf: SchemaSource;
  readonly clock: LaneClock;
  readonly metrics: Metrics;
  readonly tracing: Pick<Tracing, 'resume'> | null;
  readonly logger: Logger;
}

/** Intervals while assets are pending, and while no assets are pending. */
const RECONCILE_INTERVAL_MS = 5_000;
const IDLE_RECONCILE_INTERVAL_MS = 15_000;

export async function openMinter(parts: MinterParts) {
  const { logger } = parts;
  const metrics = createMinterMetrics({ metrics: parts.metrics, clock: parts.clock, workers: () => workers.all });
  const traces = createMintTraces(parts.tracing);
  const workers: LaneWorkers<LaneWorker> = new LaneWorkers({
    open: createOpenWorker(parts, metrics, traces),
    find: (partition) => findLanes(parts, partition),
    onFault: (error, message) => logger.warn({ error }, message),
  });
  const consumer = await parts.openConsumer({
    onBatch: createOnBatch(parts, { metrics, traces }, (lane, partition) => workers.of(lane, partition)),
    onAssign: async (assigned) => {
      await workers.assign(assigned);
      return assigned.committed;
    },
    onRevoke: (_topic, partition) => workers.revoke(partition),
  });
  const reconciling = startReconciling(workers, logger);
  const faultOf = ({ lane, fault }: LaneWorker) => (fault === null ? [] : [[toSignerKey(lane), fault] as const]);
  return {
    ready: { consumer: () => consumer.ready(), broker: () => parts.producer.ready() },
    /** Requests are accepted even if these checks fail. */
    degraded: { lanes: () => workers.all.every(({ fault }) => fault === null) },
    /** Why partitions are paused and why lanes fail, by name. */
    blockers: () => Object.fromEntries<string>([...consumer.blockers(), ...workers.all.flatMap(faultOf)]),
    async close() {
      await reconciling.stop();
      await consumer.close();
      await workers.close();
    },
  };
}

function startReconciling(workers: LaneWorkers<LaneWorker>, logger: Logger): { stop(): Promise<void> } {
  const stopped = new AbortController();
  const run = async () => {
    let isPending = true;
    while (!stopped.signal.aborted) {
      await pause(isPending ? RECONCILE_INTERVAL_MS : IDLE_RECONCILE_INTERVAL_MS, stopped.signal);
      if (stopped.signal.aborted) return;
      isPending = await workers.reconcile().catch((error) => {
        logger.warn({ error }, 'reconciling lanes failed');
        return true;
      });
    }
  };
  const ended = run();
  return {
    stop: async () => {
      stopped.abort();
      await ended;
    },
  };
}

/** Stores states before the offset is committed. */
function createOnBatch(
  { schemaOf, producer }: MinterParts,
  { metrics, traces }: { metrics: MinterMetrics; traces: MintTraces },
  workerOf: (lane: SignerLane, partition: number) => LaneWorker,
): BatchHandler['onBatch'] {
  const decode = createDecodeRequests(schemaOf);
  return async (records, { partition }) => {
    const { requests, deadLetters } = await decode(records);
    const recordsByOffset = new Map(records.map((record) => [record.offset, record]));
    for (const { request, offset } of requests) traces.follow(request, recordsByOffset.get(offset)!);
    const lanes = new Map<string, ReceivedRequest[]>();
    for (const received of requests) {
      const key = toSignerKey(received.request);
      lanes.set(key, [...(lanes.get(key) ?? []), received]);
    }
    try {
      for (const requests of lanes.values()) {
        const { chain, signer } = requests[0]!.request;
        metrics.accepted(await workerOf({ chain, signer }, partition).accept(requests));
      }
      if (deadLetters.length > 0) await sendDeadLetters(producer, deadLetters, 'mint');
    } catch (cause) {
      throw new RetryableFault('requests were not accepted', { cause });
    }
    metrics.deadLetters(deadLetters.length);
  };
}

/** Finds signers with pending assets whose key maps to this partition. */
async function findLanes(
  { log, reader, requestTopic }: MinterParts,
  partition: number,
): Promise<readonly SignerLane[]> {
  try {
    const { length: partitions } = await reader.bounds(requestTopic);
    return await log.lanesOf({ partition, partitions });
  } catch (cause) {
    throw new RetryableFault('the mint states could not be read', { cause });
  }
}

function createOpenWorker(
  parts: MinterParts,
  metrics: MinterMetrics,
  traces: MintTraces,
): (lane: SignerLane) => LaneWorker {
  const { chains, signerOf, isUnlinked, clock, logger } = parts;
  const log = traces.watchLog(metrics.watchLog(parts.log));
  const choices = new Map(
    [...chains].map(([chain, { nodes, rules }]) => {
      const options = { chain, chainId: rules.chainId, logger };
      return [chain, createNodeChoice(nodes.map((node) => metrics.watchNode(chain, logChainId(node, options))))];
    }),
  );
  return (lane) => {
    const chain = chains.get(lane.chain);
    const nodes = choices.get(lane.chain) ?? createNodeChoice([]);
    const rules = chain?.rules ?? NO_RULES;
    const lanes = { lane, log, nodes, rules, clock, activityIdOf, isUnlinked, signer: signerOf(lane) };
    return new LaneWorker({ lane, logger, pollMs: chain?.pollMs ?? null, takeOver: () => MintLane.takeOver(lanes) });
  };
}

/** Placeholder for a chain that is not configured. */
const NO_RULES = {} as ChainRules;

/** Uses one node at a time, in order of preference, until a caller skips it. */
export function createNodeChoice(nodes: readonly ChainNode[]): ChainNodes {
  let at = 0;
  return {
    count: nodes.length,
    get current() {
      return nodes[at]!;
    },
    skip: (node) => {
      // Two lanes may report the same fault.
      if (node === nodes[at]) at = (at + 1) % nodes.length;
    },
  };
}

/** Logs each change of the reported chain id once. Omits the node's URL, which may contain a secret. */
export function logChainId(
  node: ChainNode,
  { chain, chainId: wanted, logger }: { chain: string; chainId: number; logger: Pick<Logger, 'warn' | 'info'> },
): ChainNode {
  let last = wanted;
  return {
    ...node,
    chainId: async () => {
      const reported = await node.chainId();
      if (reported !== last) {
        const fields = { chain, wantedChainId: wanted, reportedChainId: reported };
        if (reported === wanted) logger.info(fields, 'node back in use: chain id is correct');
        else logger.warn(fields, 'node skipped: unexpected chain id');
      }
      last = reported;
      return reported;
    },
  };
}

/** Decodes records. A record that is not a request becomes a dead letter. */
function createDecodeRequests(schemaOf: SchemaSource) {
  const readValue = createRecordReader({ schemaOf, createReader: mintRequestCodec.decoderOf });
  return async (records: readonly StreamRecord[]) => {
    const requests: ReceivedRequest[] = [];
    const deadLetters: DeadLetter[] = [];
    for (const record of records) {
      const read = await readValue(record.value);
      if (read.kind === 'unreadable') deadLetters.push({ record, reason: read.reason });
      else requests.push({ request: toPlain(read.record), partition: record.partition, offset: record.offset });
    }
    return { requests, deadLetters };
  };
}

/** Copies the record, because an instance of the codec's class does not equal plain objects in comparisons. */
const toPlain = (record: MintRequestRecord): MintRequestRecord => ({ ...record });
