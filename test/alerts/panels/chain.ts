import { type Dashboard, growth, orEmpty, orZero, perSecond } from './panel.ts';

export const CHAIN: Dashboard = {
  title: 'Chains and mints',
  description: 'Whether chains are indexed and served without delay, and whether mints are settled.',
  panels: [
    {
      title: 'Final blocks that are not indexed',
      unit: 'short',
      description: 'Their activities are missing from the chain API.',
      alert: 'IndexerBehind',
      queries: [['max by (chain) (playline_chain_indexer_behind_blocks)', '{{chain}}']],
    },
    {
      title: 'Halted chains',
      unit: 'bool_yes_no',
      description:
        'Halted: a final block was replaced. Too large: no node returns the complete next block; add a node without a limit on responses.',
      alert: 'ChainHalted',
      related: ['BlockUnreadable'],
      isStat: true,
      queries: [
        ['max by (chain) (playline_chain_indexer_halted)', '{{chain}} halted'],
        ['max by (chain) (playline_chain_indexer_too_large)', '{{chain}} too large'],
      ],
    },
    {
      title: 'Delay of the feeds',
      unit: 's',
      description: 'Pages of the chain API end this long before now. A partition is written by one instance at a time.',
      alert: 'FeedBehind',
      queries: [
        [
          'time() - max by (partition) (playline_activity_writer_watermark_timestamp_seconds)',
          'partition {{partition}}',
        ],
      ],
    },
    {
      title: 'Time without a new block',
      unit: 's',
      description: 'No node has a higher block. Compare with a public explorer.',
      alert: 'ChainStalled',
      queries: [['max by (chain) (playline_chain_indexer_head_unchanged_seconds)', '{{chain}}']],
    },
    {
      title: 'Overdue steps of the indexer',
      unit: 's',
      description: 'Nodes or brokers do not respond.',
      alert: 'IndexerSilent',
      queries: [['max by (chain) (playline_chain_indexer_silent_seconds)', '{{chain}}']],
    },
    {
      title: 'Faults of nodes',
      unit: 'cps',
      description: 'Requests to a node that failed. A lagging node is silent, or behind the other nodes.',
      related: ['ChainNodeLags', 'IndexerSilent'],
      queries: [
        [
          orZero(perSecond('playline_chain_indexer_faults_total', 'chain, node, kind'), 'chain'),
          '{{chain}} {{node}} {{kind}}',
        ],
        ['max by (chain, node) (playline_chain_indexer_node_lags)', '{{chain}} {{node}} lags'],
      ],
    },
    {
      title: 'Incomplete activities within an hour',
      unit: 'short',
      description:
        'Logs that are missing from the feed: summarised because a block has too many, or malformed. Inspect the contract that emits them.',
      redFrom: 1,
      queries: [
        [growth('playline_chain_indexer_summarised_total', 'chain'), '{{chain}} summarised'],
        [
          orZero(growth('playline_chain_indexer_malformed_logs_total', 'chain, reason'), 'chain'),
          '{{chain}} malformed: {{reason}}',
        ],
      ],
    },
    {
      title: 'Oldest unsettled mint',
      unit: 's',
      description: 'Later requests of the signer wait as well.',
      alert: 'MintsBlocked',
      queries: [
        [orZero('max by (chain, signer) (playline_minter_oldest_pending_seconds)', 'chain'), '{{chain}} {{signer}}'],
      ],
    },
    {
      title: 'Assets that wait for a reason',
      unit: 'short',
      description:
        'Assets that cannot be minted now: funds, fees, a missing role, a disabled key or no usable node. `npm run mints -- signers` lists the reasons.',
      related: ['MintsBlocked'],
      redFrom: 1,
      queries: [[orZero('max by (chain, signer) (playline_minter_waiting_assets)', 'chain'), '{{chain}} {{signer}}']],
    },
    {
      title: 'Balance of signers',
      unit: 'none',
      description: 'In the native currency of the chain. Mints wait when it is used up. Empty until a signer mints.',
      alert: 'SignerBalanceLow',
      queries: [[orEmpty('min by (chain, signer) (playline_minter_funds_ether)', 'chain'), '{{chain}} {{signer}}']],
    },
    {
      title: 'Settled assets within an hour',
      unit: 'short',
      description:
        '`npm run mints -- show` prints the error of a failed asset, and `npm run mints -- retry` mints it again.',
      queries: [[orZero(growth('playline_minter_settled_total', 'status'), 'status'), '{{status}}']],
    },
    {
      title: 'Keys that cannot be decrypted',
      unit: 'short',
      description: 'SIGNER_KEYS lacks the private key for these signable keys: restore the older key.',
      related: ['ServiceDegraded'],
      redFrom: 1,
      queries: [['max by (instance) (playline_minter_unopened_keys)', '{{instance}}']],
    },
  ],
};
