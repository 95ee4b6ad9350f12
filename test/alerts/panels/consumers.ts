import { type Dashboard, growth, orZero, perSecond, quantile } from './panel.ts';

export const CONSUMERS: Dashboard = {
  title: 'Consumers',
  description: 'Whether the consumers keep up with their topics, and which partitions, records or stores hold them up.',
  panels: [
    {
      title: 'Backlog',
      unit: 'short',
      description:
        'Records in the log that are not processed yet. A peak that shrinks is normal. The alert compares the backlog with the rate of processing.',
      related: ['ConsumerBehind'],
      queries: [['sum by (service, topic) (playline_stream_lag_records)', '{{service}} {{topic}}']],
    },
    {
      title: 'Processed records',
      unit: 'cps',
      description:
        'A topic with a backlog and without processed records is blocked: see the other panels for the reason.',
      related: ['ConsumerBehind'],
      queries: [
        [orZero(perSecond('playline_stream_records_total', 'service, topic'), 'service'), '{{service}} {{topic}}'],
      ],
    },
    {
      title: 'Time until records are deleted',
      unit: 's',
      description: 'Kafka deletes a waiting record after this time, and the record is lost.',
      alert: 'RetentionEnds',
      queries: [['min by (service, topic) (playline_stream_retention_left_seconds)', '{{service}} {{topic}}']],
    },
    {
      title: 'Paused partitions',
      unit: 'short',
      description: 'Partitions that are paused by a permanent fault.',
      alert: 'PartitionStopped',
      queries: [
        [
          orZero('sum by (service, instance, topic) (playline_stream_stopped_partitions)', 'service'),
          '{{service}} {{instance}} {{topic}}',
        ],
      ],
    },
    {
      title: 'Open dead letters',
      unit: 'short',
      description: 'Records that could not be processed, and that are neither replayed nor dropped yet.',
      alert: 'DeadLetters',
      queries: [['max by (topic) (playline_stream_open_dead_letters)', '{{topic}}']],
    },
    {
      title: 'Records missing from the log within an hour',
      unit: 'short',
      description:
        'Offsets that a consumer could not read, because retention had deleted them. The records are lost for this consumer.',
      redFrom: 1,
      queries: [
        [orZero(growth('playline_stream_offsets_skipped_total', 'service, topic'), 'service'), '{{service}} {{topic}}'],
      ],
    },
    {
      title: 'Retries',
      unit: 'cps',
      description: 'Steps that are repeated because of a temporary fault. The step names the store that is slow.',
      alert: 'WritesRepeated',
      queries: [
        [
          orZero(perSecond('playline_stream_retries_total', 'service, topic, step'), 'service'),
          '{{service}} {{topic}} {{step}}',
        ],
      ],
    },
    {
      title: 'Age of the oldest write',
      unit: 's',
      description: 'The partition waits until the block is stored.',
      alert: 'WriteStuck',
      queries: [
        [
          'max by (service, instance, topic) (playline_stream_oldest_write_seconds)',
          '{{service}} {{instance}} {{topic}}',
        ],
      ],
    },
    {
      title: 'Duration of inserts (p99)',
      unit: 's',
      description:
        'Inserts of more than a few seconds mean that ClickHouse is overloaded: check its merges, disks and running queries.',
      queries: [[quantile(0.99, 'playline_store_insert_duration_seconds_bucket', 'table'), '{{table}}']],
    },
    {
      title: 'Faults of ClickHouse',
      unit: 'cps',
      description: 'The error names of ClickHouse, by table. Writers repeat the insert.',
      related: ['ClickHouseUnavailable', 'WritesRepeated'],
      queries: [
        [
          orZero(perSecond('playline_store_faults_total', 'service, table, code'), 'service'),
          '{{service}} {{table}} {{code}}',
        ],
      ],
    },
    {
      title: 'Link facts that wait for an erasure',
      unit: 'short',
      description: 'If the number does not return to 0, an erasure is stuck (dashboard Erasure).',
      related: ['ErasureLate'],
      queries: [['sum by (instance) (playline_identity_waiting_facts)', '{{instance}}']],
    },
    {
      title: 'Rewinds of the identity graph within an hour',
      unit: 'short',
      description:
        'Redis lost facts that were applied, and the linker has applied them again. Check why Redis restarts.',
      related: ['RedisEmptied'],
      redFrom: 1,
      queries: [[growth('playline_identity_rewinds_total', 'instance'), '{{instance}}']],
    },
  ],
};
