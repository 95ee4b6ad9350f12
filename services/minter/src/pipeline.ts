import { activityIdOf } from '@playline/chain';
import {
  createRecordReader,
  type MintRequestRecord,
  mintRequestCodec,
  type SchemaSource,
  toSignerKey,
} from '@playline/contracts';
import type { ReadinessChecks } from '@playline/http';
import type { Closable, Logger, Metrics } from '@playline/runtime';
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

/** A chain that is minted on. */
export interface MintedChain {
  /** The preferred one first. */
  readonly nodes: readonly ChainNode[];
  readonly rules: ChainRules;
  readonly pollMs: number;
}

export interface MinterParts {
  /** By the names of chains. */
  readonly chains: ReadonlyMap<string, MintedChain>;
  readonly log: MintLog;
  readonly signerOf: (lane: SignerLane) => LaneSigner;
  readonly isUnlinked: MintLaneParts['isUnlinked'];
  openConsumer(handler: BatchHandler): Promise<Consumer>;
  readonly producer: Producer;
  readonly reader: Pick<LogReader, 'bounds'>;
  readonly requestTopic: string;
  /** Texts of the schemas that requests were written with. */
  readonly schemaOf: SchemaSource;
  readonly clock: LaneClock;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

export interface Minter extends Closable {
  readonly ready: ReadinessChecks;
  /** Parts that may fail for a while: requests are still accepted. */
  readonly degraded: ReadinessChecks;
  /** Why partitions stand and which faults lanes have, by name. */
  blockers(): Readonly<Record<string, string>>;
}

/** How often to look for signers with pending assets and no worker: while some are pending, and while none are. */
const RECONCILE_EVERY_MS = 5_000;
const IDLE_RECONCILE_EVERY_MS = 15_000;

/** Opens the minter: requests become states, and a worker for each signer mints them. */
export async function openMinter(parts: MinterParts): Promise<Minter> {
  const { logger } = parts;
  const metrics = createMinterMetrics({ metrics: parts.metrics, clock: parts.clock, workers: () => workers.all });
  const workers: LaneWorkers<LaneWorker> = new LaneWorkers({
    open: createOpenWorker(parts, metrics),
    find: (partition) => findLanes(parts, partition),
    onFault: (error, words) => logger.warn({ error }, words),
  });
  const consumer = await parts.openConsumer({
    onBatch: createOnBatch(parts, metrics, (lane, partition) => workers.of(lane, partition)),
    onAssign: async (assigned) => {
      await workers.assign(assigned);
      return assigned.committed;
    },
    onRevoke: (_topic, partition) => workers.revoke(partition),
  });
  const looking = startReconciling(workers, logger);
  const faultOf = ({ lane, fault }: LaneWorker) => (fault === null ? [] : [[toSignerKey(lane), fault] as const]);
  return {
    ready: { consumer: () => consumer.ready(), broker: () => parts.producer.ready() },
    degraded: { lanes: () => workers.all.every(({ fault }) => fault === null) },
    blockers: () => Object.fromEntries([...consumer.blockers(), ...workers.all.flatMap(faultOf)]),
    async close() {
      await looking.stop();
      await consumer.close();
      await workers.close();
    },
  };
}

function startReconciling(workers: LaneWorkers<LaneWorker>, logger: Logger): { stop(): Promise<void> } {
  const stopped = new AbortController();
  const look = async () => {
    let isPending = true;
    while (!stopped.signal.aborted) {
      await pause(isPending ? RECONCILE_EVERY_MS : IDLE_RECONCILE_EVERY_MS, stopped.signal);
      if (stopped.signal.aborted) return;
      isPending = await workers.reconcile().catch((error) => {
        logger.warn({ error }, 'it was not looked for assets that nobody works for');
        return true;
      });
    }
  };
  const ended = look();
  return {
    stop: async () => {
      stopped.abort();
      await ended;
    },
  };
}

/** Requests are stored as states before the batch ends, and only then is their offset committed. */
function createOnBatch(
  { schemaOf, producer }: MinterParts,
  metrics: MinterMetrics,
  workerOf: (lane: SignerLane, partition: number) => LaneWorker,
): BatchHandler['onBatch'] {
  const decode = createDecodeRequests(schemaOf);
  return async (records, { partition }) => {
    const { requests: placed, deadLetters: letters } = await decode(records);
    const lanes = new Map<string, ReceivedRequest[]>();
    for (const one of placed) {
      const key = toSignerKey(one.request);
      lanes.set(key, [...(lanes.get(key) ?? []), one]);
    }
    try {
      for (const requests of lanes.values()) {
        const { chain, signer } = requests[0]!.request;
        metrics.accepted(await workerOf({ chain, signer }, partition).take(requests));
      }
      if (letters.length > 0) await sendDeadLetters(producer, letters, 'mint');
    } catch (cause) {
      throw new RetryableFault('requests were not taken', { cause });
    }
    metrics.deadLetters(letters.length);
  };
}

/** Signers with pending assets that no process works for since the partition was revoked elsewhere. */
async function findLanes(
  { log, reader, requestTopic }: MinterParts,
  partition: number,
): Promise<readonly SignerLane[]> {
  try {
    const { length: partitions } = await reader.bounds(requestTopic);
    return await log.lanesOf({ partition, partitions });
  } catch (cause) {
    throw new RetryableFault('the states of mints could not be read', { cause });
  }
}

function createOpenWorker(parts: MinterParts, metrics: MinterMetrics): (lane: SignerLane) => LaneWorker {
  const { chains, signerOf, isUnlinked, clock, logger } = parts;
  const log = metrics.watchLog(parts.log);
  const choices = new Map(
    [...chains].map(([chain, { nodes, rules }]) => {
      const told = { chain, chainId: rules.chainId, logger };
      return [chain, createNodeChoice(nodes.map((node) => metrics.watchNode(chain, logChainId(node, told))))];
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

/** Rules of a chain that is not configured: never used. */
const NO_RULES = {} as ChainRules;

/** Nodes of one chain, the preferred one first. One node at a time is used, until a caller passes it over. */
export function createNodeChoice(nodes: readonly ChainNode[]): ChainNodes {
  let at = 0;
  return {
    count: nodes.length,
    get current() {
      return nodes[at]!;
    },
    skip: (node) => {
      // Two lanes may report the same fault: only the first report switches nodes.
      if (node === nodes[at]) at = (at + 1) % nodes.length;
    },
  };
}

interface ChainIdOptions {
  /** Name of the chain. The address of the node may contain a secret. */
  readonly chain: string;
  readonly chainId: number;
  readonly logger: Pick<Logger, 'warn' | 'info'>;
}

/** Wraps a node and logs once when it begins to report another chain id, and when it reports the right one again. */
export function logChainId(node: ChainNode, { chain, chainId: wanted, logger }: ChainIdOptions): ChainNode {
  let last = wanted;
  return {
    ...node,
    chainId: async () => {
      const answered = await node.chainId();
      if (answered !== last) {
        const said = { chain, wantedChainId: wanted, answeredChainId: answered };
        if (answered === wanted) logger.info(said, 'a node of the chain reports the right chain id again');
        else logger.warn(said, 'a node of the chain reports another chain id, and is not used');
      }
      last = answered;
      return answered;
    },
  };
}

interface DecodedRequests {
  readonly requests: readonly ReceivedRequest[];
  readonly deadLetters: readonly DeadLetter[];
}

/** Creates the step that decodes the requests of a batch; a record that is no request becomes a dead letter. */
function createDecodeRequests(schemaOf: SchemaSource) {
  const readValue = createRecordReader({ schemaOf, createReader: mintRequestCodec.decoderOf });
  return async (records: readonly StreamRecord[]): Promise<DecodedRequests> => {
    const placed: ReceivedRequest[] = [];
    const letters: DeadLetter[] = [];
    for (const record of records) {
      const read = await readValue(record.value);
      if (read.kind === 'unreadable') letters.push({ record, reason: read.reason });
      else placed.push({ request: toPlain(read.record), partition: record.partition, offset: record.offset });
    }
    return { requests: placed, deadLetters: letters };
  };
}

/** An instance of the codec's class would not equal a record from elsewhere. */
const toPlain = (record: MintRequestRecord): MintRequestRecord => ({ ...record });
