import { toHexText } from '@playline/contracts';
import type { Metrics } from '@playline/runtime';
import type { LaneWorker } from './lane/lane-worker.ts';
import type { ChainHead, ChainNode, LaneClock, LaneWriter, MintLog } from './ports.ts';
import type { AcceptedRequests } from './steps/accept-requests.ts';

interface ObservedHead {
  readonly head: ChainHead;
  /** Monotonic time. */
  readonly advancedAtMs: number;
}

const WEI_PER_ETHER = 1e18;

type MeasuredWorker = Pick<LaneWorker, 'lane' | 'current' | 'takeOvers'>;

export interface MinterMetricsParts {
  readonly metrics: Metrics;
  readonly clock: LaneClock;
  readonly workers: () => Iterable<MeasuredWorker>;
}

export type MinterMetrics = ReturnType<typeof createMinterMetrics>;

export function createMinterMetrics(parts: MinterMetricsParts) {
  const { metrics, clock } = parts;
  const requests = metrics.counter('playline_minter_requests_total', 'Requests by outcome', ['result']);
  const logged = metrics.counter('playline_minter_transactions_total', 'Signed transactions on the log', ['kind']);
  const settled = metrics.counter('playline_minter_settled_total', 'Settled assets', ['status']);
  const withoutToken = metrics.counter(
    'playline_minter_succeeded_without_token_total',
    'Assets that succeeded without an event for their token',
  );
  const observed = new Map<string, ObservedHead>();
  watchHeads(parts, observed);
  watchLanes(parts);
  return {
    accepted: ({ states, dropped, known }: AcceptedRequests) => {
      requests.inc({ result: 'accepted' }, states.length);
      requests.inc({ result: 'dropped' }, dropped);
      requests.inc({ result: 'known' }, known);
    },
    deadLetters: (count: number) => requests.inc({ result: 'dead_letter' }, count),
    /** Counts transactions and settled assets once they are on the log. */
    watchLog: (log: MintLog): MintLog => ({
      ...log,
      openWriter: async (lane) => {
        const writer: LaneWriter = await log.openWriter(lane);
        const append: LaneWriter['append'] = async (change) => {
          await writer.append(change);
          for (const { kind, variant } of change.transactions)
            if (kind !== 'high_water') logged.inc({ kind: kind === 'mint' && variant > 0 ? 'raise' : kind });
          for (const { status, activityId } of change.states) {
            if (status !== 'pending') settled.inc({ status });
            if (status === 'succeeded' && activityId === null) withoutToken.inc();
          }
        };
        return { ...writer, append };
      },
    }),
    /** Records the node's latest block and when a higher block was last reported. */
    watchNode: (chain: string, node: ChainNode): ChainNode => ({
      ...node,
      head: async (known) => {
        const head = await node.head(known);
        const before = observed.get(chain);
        if (before === undefined || head.number > before.head.number)
          observed.set(chain, { head, advancedAtMs: clock.monotonicMs() });
        return head;
      },
    }),
  };
}

function watchHeads(
  { metrics, clock, workers }: MinterMetricsParts,
  observed: ReadonlyMap<string, ObservedHead>,
): void {
  const gauge = (name: string, help: string, measure: (observed: ObservedHead) => number) =>
    metrics.collectedGauge(name, help, {
      labelNames: ['chain'],
      collect: (gauge) => {
        for (const [chain, each] of observed) gauge.set({ chain }, measure(each));
      },
    });
  gauge('playline_minter_head_block_number', 'Latest block that a node has reported', ({ head }) => head.number);
  gauge(
    'playline_minter_horizon_blocks',
    'Blocks behind the head that are not final',
    ({ head }) => head.number - head.finalized,
  );
  metrics.collectedGauge(
    'playline_minter_head_silent_seconds',
    'Seconds without a higher block while assets were pending',
    {
      labelNames: ['chain'],
      collect: (gauge) => {
        gauge.reset();
        const since = new Map<string, number>();
        for (const { lane, current } of workers()) {
          const sinceMs = current?.pendingSinceMs ?? null;
          if (sinceMs !== null) since.set(lane.chain, Math.min(sinceMs, since.get(lane.chain) ?? sinceMs));
          else if (!since.has(lane.chain) && observed.has(lane.chain)) gauge.set({ chain: lane.chain }, 0);
        }
        for (const [chain, sinceMs] of since) {
          const fromMs = Math.max(sinceMs, observed.get(chain)?.advancedAtMs ?? sinceMs);
          gauge.set({ chain }, (clock.monotonicMs() - fromMs) / 1000);
        }
      },
    },
  );
}

function watchLanes({ metrics, clock, workers }: MinterMetricsParts): void {
  const gauge = (name: string, help: string, measure: (worker: MeasuredWorker) => number | null) =>
    metrics.collectedGauge(name, help, {
      labelNames: ['chain', 'signer'],
      collect: (gauge) => {
        gauge.reset();
        for (const worker of workers()) {
          const value = measure(worker);
          const { chain, signer } = worker.lane;
          if (value !== null) gauge.set({ chain, signer: toHexText(signer) }, value);
        }
      },
    });
  const pendingOf = (worker: MeasuredWorker) => worker.current?.ledger.pending ?? [];
  gauge('playline_minter_pending_assets', 'Unsettled assets', (worker) => pendingOf(worker).length);
  gauge(
    'playline_minter_waiting_assets',
    'Waiting assets; their state contains the reason',
    (worker) => pendingOf(worker).filter(({ stage }) => stage === 'waiting').length,
  );
  gauge(
    'playline_minter_oldest_pending_seconds',
    'Age of the oldest unsettled asset, or 0 if there is none',
    (worker) => {
      const oldest = pendingOf(worker).reduce(
        (least, { requestedAt }) => Math.min(least, requestedAt),
        Number.POSITIVE_INFINITY,
      );
      return Number.isFinite(oldest) ? Math.max(0, (clock.wallClockMs() - oldest) / 1000) : 0;
    },
  );
  gauge(
    'playline_minter_open_nonces',
    'Nonces without a final transaction',
    (worker) => worker.current?.ledger.openNonces.length ?? 0,
  );
  gauge('playline_minter_takeovers', 'Takeovers of the signer by this process', (worker) => worker.takeOvers);
  gauge('playline_minter_funds_ether', 'Balance of the signer at the last turn', ({ current }) =>
    current?.funds == null ? null : Number(current.funds) / WEI_PER_ETHER,
  );
}
