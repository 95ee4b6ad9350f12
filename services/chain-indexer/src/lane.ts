import {
  type BlockName,
  type BlockRange,
  type ChainNode,
  createReadActivities,
  ForkFault,
  type IndexedChain,
  NodeFault,
  type ReadBlocks,
  type ReadLog,
} from '@playline/chain';
import { type ActivityRecord, fromHexText, type IndexProgressRecord, toHexText } from '@playline/contracts';
import type { Logger } from '@playline/runtime';
import { FencedFault, type IndexLog, type IndexLogs } from './index-log.ts';
import type { ChainMetrics } from './indexer-metrics.ts';
import { NodePool, NodesFault } from './node-pool.ts';
import { BlockSummaries, DeadLetterLimit, type SummaryNotice, toNoticeText } from './steps/block-summaries.ts';
import { ChainIdentity } from './steps/chain-identity.ts';
import { NewTokens } from './steps/new-tokens.ts';
import { RangeSize, readInTime, SmallerRangeFault } from './steps/range-size.ts';
import { type Horizon, HorizonTracker } from './steps/read-horizon.ts';

export interface LaneOptions {
  readonly chain: IndexedChain;
  readonly nodes: readonly ChainNode[];
  /** The chain's identity, shared with the head watch. */
  readonly identity?: ChainIdentity;
  /** Whether the node lags behind other nodes. */
  readonly isLagging?: (node: ChainNode) => boolean;
  readonly logs: IndexLogs;
  readonly metrics: ChainMetrics;
  readonly logger?: Logger;
  /** Returns monotonic time. */
  readonly nowMs?: () => number;
  readonly wallClockMs?: () => number;
  /** Maximum activities per transaction. */
  readonly recordsMax?: number;
}

/** `inactive` if another indexer owns the chain. */
export type LaneStep = 'more' | 'idle' | 'inactive';

/** The interval at which the horizon is read while it is far ahead. */
const HORIZON_AGE_MAX_MS = 5_000;
/** The interval at which progress is published, which shows other indexers that the chain is being indexed. */
const PROGRESS_MS = 20_000;
/** More than one, because a single incorrect response may come from a node under maintenance. */
const FORKS_TO_HALT = 3;
/** Maximum contracts that are logged. `npm run chain -- verify` lists all contracts. */
const UNINDEXED_MAX = 1_000;

/** Indexes a chain, one range of final blocks per step. All durable state is stored on the log. */
export class ChainLane {
  private readonly options: LaneOptions;
  private readonly pool: NodePool;
  private readonly tracker: HorizonTracker;
  private readonly takeover: TakeoverWait;
  private readonly nowMs: () => number;
  private readonly wallClockMs: () => number;
  private readonly readActivities: ReturnType<typeof createReadActivities>;
  private log: IndexLog | null = null;
  /** The published progress, or later progress if only empty blocks followed. */
  private progress: IndexProgressRecord | null = null;
  private publishedAtMs = Number.NEGATIVE_INFINITY;
  /** When a step last found final blocks. */
  foundAtMs = Number.NEGATIVE_INFINITY;
  private horizonAtMs = Number.NEGATIVE_INFINITY;
  private final: BlockName | null = null;
  private readonly identity: ChainIdentity;
  /** Range sizes per node, because nodes have different limits. */
  private readonly sizes: ReadonlyMap<ChainNode, RangeSize>;
  private forks = 0;
  private readonly newTokens: NewTokens;
  private readonly deadLetterLimit = new DeadLetterLimit();
  /** Contracts with unindexed events that were logged. */
  private readonly unindexed = new Set<string>();

  constructor(options: LaneOptions) {
    const { chain, metrics } = options;
    this.options = options;
    this.nowMs = options.nowMs ?? (() => performance.now());
    this.wallClockMs = options.wallClockMs ?? Date.now;
    this.sizes = new Map(options.nodes.map((node) => [node, new RangeSize(chain.rangeBlocks, this.nowMs)]));
    this.identity = options.identity ?? new ChainIdentity(chain.chainId);
    const onFault = (node: ChainNode, fault: Error) => {
      if (fault instanceof NodeFault) metrics.countFault(node, fault);
      else options.logger?.error({ chain: chain.name, node: node.name, fault }, 'describing a token failed');
    };
    this.newTokens = new NewTokens({ chain: chain.name, onFault, nowMs: this.nowMs });
    this.readActivities = createReadActivities({ ...chain, chain: chain.name });
    this.tracker = new HorizonTracker({ finality: chain.finality, onReorg: (depth) => this.countReorg(depth) });
    this.takeover = new TakeoverWait(this.nowMs);
    this.pool = new NodePool({
      nodes: options.nodes,
      nowMs: this.nowMs,
      ...(options.isLagging && { isLagging: options.isLagging }),
      check: (node) => this.identity.check(node),
      onFault: (node, fault) => {
        metrics.countFault(node, fault);
        options.logger?.debug({ chain: chain.name, node: node.name, kind: fault.kind, fault }, 'node failed');
      },
    });
  }

  /** Whether the nodes have a different block in place of an indexed block. */
  get isHalted(): boolean {
    return this.forks >= FORKS_TO_HALT;
  }

  /** When records were last published, possibly during the current step. */
  get workedAtMs(): number {
    return this.publishedAtMs;
  }

  /** @throws NodesFault if no node is usable. After any other fault, the log is closed */
  async step(): Promise<LaneStep> {
    const { chain, logs, metrics, logger } = this.options;
    if (await this.takeover.isNeeded(() => logs.readProgress(chain.name))) return 'inactive';
    try {
      this.log ??= await this.openLog();
      return await this.pool.use((node) => this.index(node));
    } catch (fault) {
      if (fault instanceof SmallerRangeFault) return 'more';
      if (fault instanceof NodesFault) {
        this.countFork(fault.cause instanceof ForkFault ? fault.cause : null);
        if (fault.cause?.kind === 'too-large') metrics.setTooLarge(true);
        throw fault;
      }
      // Only the log shows whether the last batch was published.
      await this.closeLog();
      if (!(fault instanceof FencedFault)) throw fault;
      metrics.countFenced();
      this.takeover.begin(await logs.readProgress(chain.name));
      logger?.warn({ chain: chain.name }, 'lane fenced by another process');
      return 'inactive';
    }
  }

  async close(): Promise<void> {
    await this.closeLog();
  }

  private async closeLog(): Promise<void> {
    const { log } = this;
    this.log = null;
    await log?.close().catch(() => {});
  }

  /** Opens the log before reading its progress. Otherwise, a range could be published twice. */
  private async openLog(): Promise<IndexLog> {
    const log = await this.options.logs.open(this.options.chain.name);
    const { progress } = log;
    this.progress = progress;
    this.tracker.reset();
    [this.final, this.horizonAtMs, this.publishedAtMs] = [null, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
    if (progress !== null) {
      this.identity.restore(toHexText(progress.genesisHash));
      if (progress.nextLog === null) this.tracker.anchor({ number: progress.block, hash: toHexText(progress.hash) });
      this.options.metrics.setIndexed(progress.block);
    }
    this.pool.recheck();
    return log;
  }

  private async index(node: ChainNode): Promise<LaneStep> {
    const { chain, metrics } = this.options;
    const size = this.sizes.get(node)!;
    const { final } = await this.readHorizon(node, size.blocks);
    const plan =
      final === null ? null : planRange({ progress: this.progress, final, start: chain.start, size: size.blocks });
    if (plan === null || final === null) {
      this.resume();
      await this.publishTokens(node);
      return 'idle';
    }
    this.foundAtMs = this.nowMs();
    const blocks = this.tracker.trackedBlocks(plan.from, plan.to);
    const range = { ...plan, hasBlooms: chain.hasBlooms, ...(blocks && { blocks }) };
    const read = await readInTime(node, range, size);
    this.resume();
    metrics.setTooLarge(false);
    await this.publish(node, read, plan);
    metrics.countRange(read.blocks.length);
    size.recordSuccess(read.blocks.length);
    return plan.to < final.number ? 'more' : 'idle';
  }

  private async readHorizon(node: ChainNode, blocks: number): Promise<Pick<Horizon, 'final'>> {
    const isFar = this.final !== null && this.final.number - (this.progress?.block ?? 0) > 2 * blocks;
    if (isFar && this.nowMs() - this.horizonAtMs < HORIZON_AGE_MAX_MS) return { final: this.final };
    const { head, final } = await this.tracker.read(node);
    [this.final, this.horizonAtMs] = [final, this.nowMs()];
    const horizon = { head: head.number, headTimestampS: head.timestampS, final: final?.number ?? null };
    this.options.metrics.setHorizon(horizon);
    return { final };
  }

  private async publish(node: ChainNode, read: ReadBlocks, plan: RangePlan): Promise<void> {
    const rules = {
      readActivities: this.readActivities,
      onRead: (readLog: ReadLog) => this.noteReading(readLog),
      ...(this.options.recordsMax !== undefined && { recordsMax: this.options.recordsMax }),
    };
    for (const batch of makeBatches(read, plan, rules)) await this.publishBatch(node, batch);
  }

  private async publishBatch(node: ChainNode, { activities, tokens, notices, reached }: ActivityBatch): Promise<void> {
    const { metrics } = this.options;
    const described = await this.newTokens.describe(node, tokens, () => this.log!.readTokens());
    this.progress = this.toProgress(reached);
    metrics.setIndexed(reached.nextLog === null ? reached.block : reached.block - 1);
    // Empty blocks require no transaction.
    if (activities.length + described.length + notices.length === 0) return this.publishProgress();
    this.logNotices(notices);
    const deadLetters = this.deadLetterLimit.take(notices, this.nowMs());
    await this.log!.publish({ activities, tokens: described, notices: deadLetters, progress: this.progress });
    this.publishedAtMs = this.nowMs();
    for (const { contractAddress } of described) this.newTokens.forget(toHexText(contractAddress));
    metrics.countPublished(activities, described.length);
  }

  /** Publishes tokens whose descriptions arrived late. If there are none, publishes the progress. */
  private async publishTokens(node: ChainNode): Promise<void> {
    if (this.progress === null) return;
    const tokens = await this.newTokens.describe(node, [], () => this.log!.readTokens());
    if (tokens.length === 0) return this.publishProgress();
    await this.log!.publish({ activities: [], tokens, notices: [], progress: this.progress });
    this.publishedAtMs = this.nowMs();
    for (const { contractAddress } of tokens) this.newTokens.forget(toHexText(contractAddress));
    this.options.metrics.countPublished([], tokens.length);
  }

  private async publishProgress(): Promise<void> {
    if (this.progress === null || this.nowMs() - this.publishedAtMs < PROGRESS_MS) return;
    const progress = { ...this.progress, changedAt: this.wallClockMs() };
    await this.log!.publish({ activities: [], tokens: [], notices: [], progress });
    [this.progress, this.publishedAtMs] = [progress, this.nowMs()];
  }

  private toProgress(reached: ActivityBatch['reached']): IndexProgressRecord {
    const genesisHash = fromHexText(this.identity.genesis!);
    return { ...reached, chain: this.options.chain.name, genesisHash, changedAt: this.wallClockMs() };
  }

  private resume(): void {
    if (this.isHalted) this.options.logger?.warn({ chain: this.options.chain.name }, 'chain resumed');
    this.forks = 0;
    this.options.metrics.setHalted(false);
  }

  private countFork(fault: ForkFault | null): void {
    if (fault === null) return;
    this.forks++;
    if (this.forks !== FORKS_TO_HALT) return;
    this.options.metrics.setHalted(true);
    const fields = { chain: this.options.chain.name, ...fault.block, reason: fault.message };
    this.options.logger?.error(fields, 'chain halted until a node returns this block again');
  }

  private countReorg(depth: number): void {
    this.options.metrics.countReorg(depth);
    this.options.logger?.info({ chain: this.options.chain.name, depth }, 'blocks replaced above the horizon');
  }

  private noteReading({ reading, log: { address: contract, blockNumber: block, logIndex: log } }: ReadLog): void {
    this.options.metrics.countReading(reading);
    if (reading.unread !== 'unindexed' || this.unindexed.has(contract) || this.unindexed.size >= UNINDEXED_MAX) return;
    this.unindexed.add(contract);
    const { name: chain } = this.options.chain;
    const fields = { chain, contract, block, log };
    this.options.logger?.warn(fields, 'unindexed Transfer event skipped: add the contract to legacyTokens');
  }

  /** Logs the notices, one line per block. */
  private logNotices(notices: readonly SummaryNotice[]): void {
    const { name: chain } = this.options.chain;
    for (const [block, noticesOfBlock] of Map.groupBy(notices, (notice) => notice.block)) {
      const reasons = noticesOfBlock.map((notice) => toNoticeText(chain, notice));
      this.options.logger?.error({ chain, block, reasons }, 'logs summarised: block budget exceeded');
    }
  }
}

/** Must be longer than PROGRESS_MS. */
const WAIT_MIN_MS = 60_000;
const WAIT_MAX_MS = 600_000;

const toProgressKey = (progress: IndexProgressRecord | null): string =>
  progress === null ? '' : `${progress.block}/${progress.nextLog}/${progress.changedAt}`;

/** Makes a fenced indexer wait while the other indexer makes progress, so that they do not fence each other. */
class TakeoverWait {
  private readonly nowMs: () => number;
  private progressKey: string | null = null;
  private waitMs = WAIT_MIN_MS;
  private untilMs = 0;

  constructor(nowMs: () => number) {
    this.nowMs = nowMs;
  }

  /** @param progress the other process's last progress */
  begin(progress: IndexProgressRecord | null): void {
    this.progressKey = toProgressKey(progress);
    this.untilMs = this.nowMs() + this.waitMs;
    this.waitMs = Math.min(2 * this.waitMs, WAIT_MAX_MS);
  }

  /** @param readProgress reads the published progress */
  async isNeeded(readProgress: () => Promise<IndexProgressRecord | null>): Promise<boolean> {
    if (this.progressKey === null) return false;
    if (this.nowMs() < this.untilMs) return true;
    const progress = await readProgress();
    if (toProgressKey(progress) === this.progressKey) {
      this.progressKey = null;
      return false;
    }
    this.begin(progress);
    return true;
  }
}

interface RangePlan extends Omit<BlockRange, 'blocks' | 'hasBlooms'> {
  /** Index of the first block's first log that is not published yet. */
  readonly firstLog: number;
}

interface PlanOptions {
  readonly progress: IndexProgressRecord | null;
  readonly final: BlockName;
  readonly start: number;
  readonly size: number;
}

const toName = ({ block, hash }: IndexProgressRecord): BlockName => ({
  number: block,
  hash: `0x${hash.toString('hex')}`,
});

/** @returns null if all final blocks are indexed */
function planRange({ progress, final, start, size }: PlanOptions): RangePlan | null {
  const isPartial = progress !== null && progress.nextLog !== null;
  const from = progress === null ? start : isPartial ? progress.block : progress.block + 1;
  if (from > final.number) return null;
  const to = Math.min(from + size - 1, final.number);
  const after = progress === null || isPartial ? null : toName(progress);
  const knownBlocks = isPartial ? [toName(progress), final] : [final];
  return { from, to, after, knownBlocks, firstLog: progress?.nextLog ?? 0 };
}

/** The content of a transaction, before tokens are described. */
interface ActivityBatch {
  readonly activities: readonly ActivityRecord[];
  readonly tokens: ReadonlySet<string>;
  readonly notices: readonly SummaryNotice[];
  /** The progress after this batch. */
  readonly reached: Pick<IndexProgressRecord, 'block' | 'hash' | 'nextLog'>;
}

interface BatchRules {
  /** Reads complete blocks, because a block's logs share a budget. */
  readonly readActivities: (read: ReadBlocks) => Iterable<ReadLog>;
  /** Called for each log that was not already published. */
  readonly onRead: (read: ReadLog) => void;
  /** A batch may exceed this limit, because the records of a log (at most 10,000) are never split. */
  readonly recordsMax?: number;
  readonly bytesMax?: number;
}

/** Publishing this many records takes a few hundred milliseconds, during which readers of the partition wait. */
const RECORDS_MAX = 5_000;
/** Limits transactions, because sale details can take 64 KiB and brokers abort long transactions. */
const BYTES_MAX = 4 * 1024 * 1024;
/** Approximate size of a record without details. */
const RECORD_BYTES = 300;

const toHash = (text: string) => Buffer.from(text.slice(2), 'hex');

/** Splits blocks into batches at log boundaries. */
export function* makeBatches(
  read: ReadBlocks,
  { from, firstLog }: Pick<RangePlan, 'from' | 'firstLog'>,
  { readActivities, onRead, recordsMax = RECORDS_MAX, bytesMax = BYTES_MAX }: BatchRules,
): Generator<ActivityBatch> {
  const summaries = new BlockSummaries();
  let [activities, tokens, bytes]: [ActivityRecord[], Set<string>, number] = [[], new Set(), 0];
  let notices: SummaryNotice[] = [];
  let current = from;
  for (const readLog of readActivities(read)) {
    const { block, log, reading } = readLog;
    if (block.number !== current) for (const notice of summaries.drain()) notices.push(notice);
    current = block.number;
    if (reading.summary !== null) summaries.note(block.number, reading.summary);
    if (block.number === from && log.logIndex < firstLog) continue;
    onRead(readLog);
    for (const record of reading.records) {
      activities.push(record);
      bytes += record.details.length + RECORD_BYTES;
    }
    for (const token of reading.tokens) tokens.add(token);
    if (activities.length < recordsMax && bytes < bytesMax) continue;
    const reached = { block: block.number, hash: toHash(block.hash), nextLog: log.logIndex + 1 };
    yield { activities, tokens, notices, reached };
    [activities, tokens, notices, bytes] = [[], new Set(), [], 0];
  }
  const last = read.blocks.at(-1)!;
  const reached = { block: last.number, hash: toHash(last.hash), nextLog: null };
  yield { activities, tokens, notices: [...notices, ...summaries.drain()], reached };
}
