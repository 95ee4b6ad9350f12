import type { ChainNode, LogRecords, NodeFault } from '@playline/chain';
import type { ActivityRecord } from '@playline/contracts';
import type { Metrics } from '@playline/runtime';

export type ChainMetrics = ReturnType<ReturnType<typeof createIndexerMetrics>>;

function createGauges(metrics: Metrics) {
  return {
    block: metrics.gauge('playline_chain_indexer_block_number', 'Block number', ['chain', 'of']),
    behind: metrics.gauge('playline_chain_indexer_behind_blocks', 'Final blocks that are not indexed yet', ['chain']),
    headTime: metrics.gauge('playline_chain_indexer_head_timestamp_seconds', 'Time of the latest block', ['chain']),
    depth: metrics.gauge('playline_chain_indexer_reorg_depth_blocks', 'Blocks replaced by the last reorganisation', [
      'chain',
    ]),
    tooLarge: metrics.gauge('playline_chain_indexer_too_large', '1 while no node returns the complete next block', [
      'chain',
    ]),
    halted: metrics.gauge(
      'playline_chain_indexer_halted',
      '1 while the chain is halted by a reorganisation below its horizon',
      ['chain'],
    ),
  };
}

function createCounters(metrics: Metrics) {
  return {
    activities: metrics.counter('playline_chain_indexer_activities_total', 'Activities published', ['chain', 'type']),
    tokens: metrics.counter('playline_chain_indexer_tokens_total', 'Tokens published', ['chain']),
    ranges: metrics.counter('playline_chain_indexer_ranges_total', 'Block ranges indexed', ['chain']),
    blocks: metrics.counter('playline_chain_indexer_blocks_total', 'Blocks indexed', ['chain']),
    faults: metrics.counter('playline_chain_indexer_faults_total', 'Node faults', ['chain', 'node', 'kind']),
    summarised: metrics.counter('playline_chain_indexer_summarised_total', "Logs that exceeded a block's budget", [
      'chain',
    ]),
    unread: metrics.counter(
      'playline_chain_indexer_malformed_logs_total',
      'Logs of known events that could not be converted',
      ['chain', 'reason'],
    ),
    reorgs: metrics.counter('playline_chain_indexer_reorgs_total', 'Reorganisations above the horizon', ['chain']),
    fenced: metrics.counter('playline_chain_indexer_fenced_total', 'Takeovers by another indexer', ['chain']),
  };
}

export function createIndexerMetrics(metrics: Metrics) {
  const [gauges, counters] = [createGauges(metrics), createCounters(metrics)];
  return (chain: string) => {
    const [latest, labels] = [{ final: -1, indexed: -1 }, { chain }];
    const setBehind = () => gauges.behind.set(labels, Math.max(0, latest.final - latest.indexed));
    gauges.halted.set(labels, 0);
    gauges.tooLarge.set(labels, 0);
    counters.summarised.inc(labels, 0);
    return {
      /** @param final null while no block is final */
      setHorizon({ head, headTimestampS, final }: { head: number; headTimestampS: number; final: number | null }) {
        gauges.block.set({ chain, of: 'head' }, head);
        gauges.headTime.set(labels, headTimestampS);
        if (final === null) return;
        latest.final = final;
        gauges.block.set({ chain, of: 'horizon' }, final);
        setBehind();
      },
      setIndexed(number: number) {
        latest.indexed = number;
        gauges.block.set({ chain, of: 'indexed' }, number);
        setBehind();
      },
      countPublished(activities: readonly ActivityRecord[], tokens: number) {
        for (const { type } of activities) counters.activities.inc({ chain, type });
        counters.tokens.inc(labels, tokens);
      },
      countRange(blocks: number) {
        counters.ranges.inc(labels);
        counters.blocks.inc(labels, blocks);
      },
      countFault: (node: ChainNode, { kind }: NodeFault) => counters.faults.inc({ chain, node: node.name, kind }),
      countReading({ summary, unread }: LogRecords) {
        if (summary !== null) counters.summarised.inc(labels);
        if (unread !== null) counters.unread.inc({ chain, reason: unread });
      },
      countReorg(depth: number) {
        counters.reorgs.inc(labels);
        gauges.depth.set(labels, depth);
      },
      setHalted: (isHalted: boolean) => gauges.halted.set(labels, isHalted ? 1 : 0),
      /** Sets whether no node returns the next block. */
      setTooLarge: (isTooLarge: boolean) => gauges.tooLarge.set(labels, isTooLarge ? 1 : 0),
      countFenced: () => counters.fenced.inc(labels),
    };
  };
}
