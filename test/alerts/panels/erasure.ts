import { type Dashboard, growth, hourlyQuantile, orZero } from './panel.ts';

export const ERASURE: Dashboard = {
  title: 'Erasure',
  description: 'Whether people are erased in time, what erasures wait for, and whether erased data has reappeared.',
  panels: [
    {
      title: 'Oldest erasure without a receipt',
      unit: 's',
      description: 'An erasure usually takes less than a minute. If the age grows, the eraser waits or fails.',
      alert: 'ErasureLate',
      queries: [['max by (instance) (playline_eraser_oldest_unverified_seconds)', '{{instance}}']],
    },
    {
      title: 'Waiting erasures',
      unit: 'short',
      description: 'Erasures without a receipt. A number that only grows means that no batch is completed.',
      related: ['ErasureLate'],
      queries: [['max(playline_eraser_waiting_requests)', 'waiting']],
    },
    {
      title: 'Time until no query finds a row',
      unit: 's',
      description: 'Measured from the request, over an hour. Deletes are slow if ClickHouse is busy with merges.',
      redFrom: 60,
      queries: [
        [hourlyQuantile(0.5, 'playline_eraser_erasure_duration_seconds'), 'p50'],
        [hourlyQuantile(0.99, 'playline_eraser_erasure_duration_seconds'), 'p99'],
      ],
    },
    {
      title: 'Receipts within an hour',
      unit: 'short',
      description: 'Completed erasures. None, while erasures wait, means that the eraser is blocked (next panels).',
      related: ['ErasureLate'],
      queries: [[growth('playline_eraser_requests_total', 'service'), 'receipts']],
    },
    {
      title: 'Failed attempts within an hour',
      unit: 'short',
      description: 'Attempts that fail and are repeated, by step.',
      related: ['EraserFails'],
      redFrom: 1,
      queries: [[orZero(growth('playline_eraser_faults_total', 'during'), 'during'), '{{during}}']],
    },
    {
      title: 'Backlog that erasures wait for',
      unit: 'short',
      description:
        'An erasure waits until linker and writers have processed all earlier records (dashboard Consumers).',
      related: ['ConsumerBehind'],
      queries: [
        [
          'sum by (service, topic) (playline_stream_lag_records{service=~"identity-linker|event-writer",topic=~".*audience.*"})',
          '{{service}} {{topic}}',
        ],
      ],
    },
    {
      title: 'Deferred erasures',
      unit: 'short',
      description:
        'Erasures that cannot be resolved and are retried alone, for example because of too many links. Run `npm run erasures -- list`.',
      redFrom: 1,
      queries: [['sum by (instance) (playline_eraser_deferred_requests)', '{{instance}}']],
    },
    {
      title: 'Holds of more than an hour',
      unit: 'short',
      description: 'Later links of these people wait. Run `npm run erasures -- list` for the state of their erasures.',
      related: ['ErasureLate'],
      redFrom: 1,
      queries: [['max(playline_eraser_holds_over_an_hour)', 'holds']],
    },
    {
      title: 'Erased rows found within a day',
      unit: 'short',
      description: 'Rows of erased people that the daily scrub has found and deleted. Treat every row as an incident.',
      related: ['ErasedDataFound'],
      redFrom: 1,
      queries: [[orZero(growth('playline_eraser_survivors_total', 'table', '1d'), 'table'), '{{table}}']],
    },
    {
      title: 'Time since maintenance',
      unit: 's',
      description:
        'Scrub and removal run daily: above 25 hours, one has failed. Erased data then remains in files. Run `npm run logs -- eraser --level warn`.',
      redFrom: 90_000,
      queries: [['min by (work) (playline_eraser_upkeep_age_seconds)', '{{work}}']],
    },
    {
      title: 'Changes of the leader and restored fences within an hour',
      unit: 'short',
      description:
        'Frequent changes of the leader delay erasures: check restarts of erasers and brokers. Fences are restored when Redis has restarted.',
      related: ['ServiceRestarts'],
      queries: [
        [growth('playline_eraser_handovers_total', 'service'), 'changes of the leader'],
        [growth('playline_eraser_fence_restores_total', 'service'), 'restored fences'],
      ],
    },
  ],
};
