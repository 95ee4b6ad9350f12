export interface AlertRule {
  /** In PascalCase, such as `IngestErrors`. */
  readonly name: string;
  /** critical: data or service is being lost, or soon will be. warning: act within the day. */
  readonly severity: 'critical' | 'warning';
  /** What happened, as Prometheus and the portal show it. Prometheus replaces `{{ $labels.x }}`. */
  readonly summary: string;
  readonly meaning: string;
  /** What to do, in Markdown. */
  readonly action: string;
}

/** A rule about the whole deployment, evaluated by Prometheus. */
export interface DeploymentRule extends AlertRule {
  /** PromQL. The rule fires if it has a result for `forSeconds`. */
  readonly expr: string;
  readonly forSeconds: number;
}

/** Two scrapes at an interval of 15 s. */
const TWO_SCRAPES_S = 30;

/**
 * The growth of a counter in the last minute. `increase` ignores the first value of a series, which is often the only one.
 * Without data from two minutes ago, Prometheus has just started, and an old value would be taken for growth.
 */
const growth = (metric: string, by: string) =>
  `sum by (${by}) (${metric} - (${metric} offset 1m or ${metric} * 0)) > 0 and on () count(up{job="playline"} offset 2m)`;

/** Services that have responded within a day. */
const KNOWN = 'count by (service) (last_over_time(up{job="playline"}[1d]))';

const share = (part: string, total: string) => `${part} / (${total} > 0)`;

const requests = (filter = '') =>
  `sum(rate(playline_http_request_duration_seconds_count{${['service="gateway"', filter].filter(Boolean).join()}}[1m]))`;
const messages = (verdict: 'accepted' | 'rejected') =>
  `sum by (environment) (rate(playline_gateway_messages_${verdict}_total[1m]))`;

const PORTAL_START = 'process_start_time_seconds{job="playline",service="portal"}';

const LAG = 'sum by (service, topic) (playline_stream_lag_records)';
const READ_RATE = 'sum by (service, topic) (rate(playline_stream_records_total[1m]))';

/** The rules for Prometheus: infra/prometheus/alerts.yml and infra/ALERTS.md are generated from this list. */
export const DEPLOYMENT_RULES: readonly DeploymentRule[] = [
  // Processes
  {
    name: 'ServiceDown',
    severity: 'critical',
    summary: '{{ or $labels.instance $labels.service }} does not respond',
    meaning:
      'A process cannot be scraped: it has exited, is suspended, or cannot be reached. If processes are found by DNS, the alert fires only when all processes of a service are missing.',
    action: 'Run `npm run status`, then `npm run logs -- <service>`. On Kubernetes, see the events of the pod.',
    // A stopped container has no address in DNS, and therefore no series.
    expr: `up{job="playline"} == 0 or (${KNOWN} unless count by (service) (up{job="playline"}))`,
    forSeconds: TWO_SCRAPES_S,
  },
  {
    name: 'ServiceNotReady',
    severity: 'critical',
    summary: '{{ $labels.service }} is not ready: {{ $labels.check }}',
    meaning: 'A process runs but does no work, because the named check fails.',
    action: 'Read `reasons` in `/readyz` of the admin port, or run `npm run status`. Repair stores first.',
    // For the stores, there are KafkaUnavailable and ClickHouseUnavailable.
    expr: 'playline_ready{check!~"broker|store"} == 0',
    forSeconds: TWO_SCRAPES_S,
  },
  {
    name: 'ServiceDegraded',
    severity: 'warning',
    summary: '{{ $labels.service }} is degraded: {{ $labels.check }}',
    meaning: 'A process works, but the named part does not, for example consents or new activities.',
    action: 'Read `reasons` in `/readyz` of the admin port, or run `npm run status`.',
    expr: 'playline_degraded == 1',
    forSeconds: TWO_SCRAPES_S,
  },
  {
    name: 'ServiceRestarts',
    severity: 'critical',
    summary: '{{ $labels.instance }} has restarted twice within two minutes',
    meaning: 'A process exits soon after its start. A rolling restart starts each process only once.',
    action: 'Run `npm run logs -- <service> --level fatal`. The last line before the exit contains the reason.',
    expr: 'changes(process_start_time_seconds{job="playline"}[2m]) >= 2',
    forSeconds: 0,
  },
  {
    name: 'ClockSkew',
    severity: 'warning',
    summary: 'The clock of {{ $labels.instance }} is wrong by {{ $value | humanizeDuration }}',
    meaning:
      'The clock of a gateway differs by more than ten seconds from the clocks of Kafka and Redis. Times of events are wrong; above one hour, the gateway accepts no messages.',
    action: 'Start time synchronisation (`timedatectl set-ntp true`). The gateway continues without a restart.',
    expr: 'abs(playline_gateway_clock_ahead_seconds) > 10',
    forSeconds: TWO_SCRAPES_S,
  },
  // Ingest
  {
    name: 'IngestErrors',
    severity: 'critical',
    summary: '{{ $value | humanizePercentage }} of the requests to gateways fail',
    meaning:
      'More than 1 % of the requests, and more than three a minute, have a 5xx response. Clients repeat such requests.',
    action: 'Run `npm run logs -- gateway --level warn --since 10m`; a line contains the cause and the trace id.',
    expr: `${share(requests('status=~"5.."'), requests())} > 0.01 and ${requests('status=~"5.."')} > 0.05`,
    forSeconds: 15,
  },
  {
    name: 'RateLimited',
    severity: 'warning',
    summary: '{{ $value | humanizePercentage }} of the requests to gateways exceed a limit',
    meaning:
      'More than 10 % of the requests, and more than three a minute, have a 429 response: a project or an address sends more than its limit.',
    action:
      'The label `limit` of `playline_gateway_rate_limited_total` names the limit, and the page Limits of the portal the project. Increase the limit with `npm run projects -- limit`, or stop the sender.',
    expr: `${share(requests('status="429"'), requests())} > 0.1 and ${requests('status="429"')} > 0.05`,
    forSeconds: 15,
  },
  {
    name: 'MessagesRejected',
    severity: 'warning',
    summary: '{{ $value | humanizePercentage }} of the messages of {{ $labels.environment }} are rejected',
    meaning:
      'More than 20 % of the messages of an environment, and more than one a second, are invalid. Rejected messages are not stored. Members of the project are alerted by the portal from 5 %.',
    action: 'The page Rejections of the portal shows causes and examples. Often a new client version is the cause.',
    expr: `${share(messages('rejected'), `${messages('accepted')} + ${messages('rejected')}`)} > 0.2 and ${messages('rejected')} > 1`,
    forSeconds: 15,
  },
  {
    name: 'SlowPublish',
    severity: 'warning',
    summary: 'Kafka acknowledges a batch after {{ $value | humanizeDuration }} (p99)',
    meaning: 'Kafka takes longer than a second to acknowledge batches. Clients wait for this time.',
    action: 'Check disks and network of the brokers, and whether a replica is missing.',
    expr: 'histogram_quantile(0.99, sum by (le) (rate(playline_gateway_publish_duration_seconds_bucket[1m]))) > 1',
    forSeconds: 15,
  },
  {
    name: 'RateLimitsNotShared',
    severity: 'warning',
    summary: '{{ $labels.instance }} limits requests on its own',
    meaning: 'Gateways cannot share limits through Redis. Each gateway applies its own share, so limits are not exact.',
    action: 'Repair Redis (`npm run status`).',
    expr: 'playline_gateway_rate_limit_shared == 0',
    forSeconds: TWO_SCRAPES_S,
  },
  // Stores
  {
    name: 'KafkaUnavailable',
    severity: 'critical',
    summary: '{{ $labels.service }} cannot reach Kafka',
    meaning: 'Messages are refused with 500, and clients retain them.',
    action: 'Repair the brokers. Nothing accepted is lost; services continue without a restart.',
    expr: 'playline_ready{check="broker"} == 0',
    forSeconds: TWO_SCRAPES_S,
  },
  {
    name: 'ClickHouseUnavailable',
    severity: 'critical',
    summary: '{{ $labels.service }} cannot reach ClickHouse',
    meaning: 'Rows wait in Kafka, and queries fail. Messages are still accepted.',
    action: 'Repair ClickHouse before the retention of the topics ends (see RetentionEnds).',
    expr: 'playline_ready{check="store"} == 0',
    forSeconds: TWO_SCRAPES_S,
  },
  {
    name: 'RedisRejectsWrites',
    severity: 'critical',
    summary: '{{ $labels.service }} cannot write to Redis',
    meaning: 'Redis is full, read-only or unavailable. Messages are accepted; identities, consents and erasures wait.',
    action: 'If Redis is full, increase `maxmemory`. Never set an eviction policy.',
    expr: 'playline_redis_takes_writes == 0',
    forSeconds: TWO_SCRAPES_S,
  },
  {
    name: 'RedisEmptied',
    severity: 'critical',
    summary: 'Redis holds no identities',
    meaning: 'Redis works but has lost its data. Links wait, and keys may be unknown.',
    action: 'Run `npm run rebuild` ([rebuild](redis/README.md#rebuild)).',
    expr: 'min(playline_ready{service="identity-linker",check=~"graph|links"}) == 0 and min(playline_redis_takes_writes) == 1',
    forSeconds: TWO_SCRAPES_S,
  },
  {
    name: 'DiskFull',
    severity: 'critical',
    summary: '{{ $labels.mountpoint }} of {{ $labels.instance }} has {{ $value | humanizePercentage }} free',
    meaning: 'Less than 10 % of a disk is free. Kafka and ClickHouse stop when a disk is full. Requires node_exporter.',
    action: 'Add space, or shorten the retention of topics or tables.',
    expr: 'node_filesystem_avail_bytes{mountpoint!~"/(dev|run)(/.*)?"} / node_filesystem_size_bytes < 0.1',
    forSeconds: TWO_SCRAPES_S,
  },
  {
    name: 'CertificateExpires',
    severity: 'warning',
    summary: 'The certificate of {{ $labels.instance }} expires in {{ $value | humanizeDuration }}',
    meaning: 'A TLS certificate expires within 14 days. Requires blackbox_exporter with the module `tcp_tls`.',
    action: 'Renew the certificate, and restart or reload the server that uses it.',
    expr: 'probe_ssl_earliest_cert_expiry - time() < 14 * 86400',
    forSeconds: 0,
  },
  // Consumers
  {
    name: 'ConsumerBehind',
    severity: 'warning',
    summary: '{{ $labels.service }} needs {{ $value | humanizeDuration }} for the backlog of {{ $labels.topic }}',
    meaning: 'At the current rate, the backlog of a topic takes longer than a minute to process.',
    action:
      'Run `npm run status` for the reason. If the consumers work at full speed, add processes, up to one per partition.',
    // A consumer that has stored nothing since its start has no rate.
    expr: `${LAG} / clamp_min(${READ_RATE} or ${LAG} * 0, 1) > 60`,
    forSeconds: TWO_SCRAPES_S,
  },
  {
    name: 'WriteStuck',
    severity: 'warning',
    summary: 'A block of {{ $labels.topic }} has been written for {{ $value | humanizeDuration }}',
    meaning: 'A block of records has not been stored for 30 s. The partition waits for it.',
    action: 'Run `npm run logs -- event-writer activity-writer --level warn --since 10m`.',
    expr: 'max by (topic) (playline_stream_oldest_write_seconds) > 30',
    forSeconds: 0,
  },
  {
    name: 'WritesRepeated',
    severity: 'warning',
    summary: '{{ $labels.service }} repeats work on {{ $labels.topic }}',
    meaning:
      'A consumer repeats a step more than six times a minute, because a store refuses it or a connection fails.',
    action:
      'Run `npm run logs -- <service> --level warn --since 10m`. If a store does not respond at all, WriteStuck fires instead.',
    expr: 'sum by (service, topic) (rate(playline_stream_retries_total[1m])) > 0.1',
    forSeconds: TWO_SCRAPES_S,
  },
  {
    name: 'PartitionStopped',
    severity: 'critical',
    summary: '{{ $value }} partitions of {{ $labels.topic }} are stopped',
    meaning: 'A partition is paused by a fault that a repetition cannot repair, such as missing records.',
    action:
      'Run `npm run offsets -- list`, and decide as described in [offsets](../services/operator/src/offsets/README.md).',
    expr: 'sum by (topic) (playline_stream_stopped_partitions) > 0',
    forSeconds: 0,
  },
  {
    name: 'DeadLetters',
    severity: 'warning',
    summary: '{{ $value }} records of {{ $labels.topic }} could not be processed',
    meaning: 'Records are stored as dead letters. They are neither replayed nor dropped yet.',
    action: 'Run `npm run dead-letters -- list`. Repair the cause, then replay or drop them.',
    expr: 'max by (topic) (playline_stream_open_dead_letters) > 0',
    forSeconds: 0,
  },
  {
    name: 'RetentionEnds',
    severity: 'critical',
    summary: 'Waiting records of {{ $labels.topic }} are deleted in {{ $value | humanizeDuration }}',
    meaning: 'Kafka deletes records that have not been processed within six hours from now.',
    action: 'Repair the consumer, or increase `retention.ms` of the topic first.',
    expr: 'min by (topic) (playline_stream_retention_left_seconds) < 6 * 3600',
    forSeconds: 0,
  },
  // People
  {
    name: 'ErasureLate',
    severity: 'critical',
    summary: 'An erasure has waited for {{ $value | humanizeDuration }}',
    meaning: 'A person has not been erased within an hour of the request.',
    action: 'Run `npm run erasures -- list` for the state, and `npm run status` for what the eraser waits for.',
    expr: 'max(playline_eraser_oldest_unverified_seconds) > 3600',
    forSeconds: 0,
  },
  {
    name: 'EraserFails',
    severity: 'warning',
    summary: 'The eraser fails during {{ $labels.during }}',
    meaning:
      'Within the last minute, an attempt to erase, to verify or to store a receipt has failed. Attempts are repeated.',
    action: 'Run `npm run logs -- eraser --level warn --since 10m`.',
    expr: growth('playline_eraser_faults_total', 'during'),
    forSeconds: 0,
  },
  {
    name: 'ErasedDataFound',
    severity: 'critical',
    summary: 'Rows of erased people were found in {{ $labels.table }}',
    meaning: 'A search has found and deleted rows of a person who had a receipt.',
    action: 'Run `npm run erasures -- list`. Find out what wrote the rows, for example an import or a restored table.',
    expr: growth('playline_eraser_survivors_total', 'table'),
    forSeconds: 0,
  },
  // Chains and mints
  {
    name: 'IndexerBehind',
    severity: 'warning',
    summary: '{{ $labels.chain }} is {{ $value }} blocks behind',
    meaning: 'More than 100 final blocks are not indexed, so their activities are missing in the chain API.',
    action: 'Run `npm run chain -- status`. Nodes may refuse or limit requests: add a node.',
    expr: 'max by (chain) (playline_chain_indexer_behind_blocks) > 100',
    forSeconds: TWO_SCRAPES_S,
  },
  {
    name: 'BlockUnreadable',
    severity: 'warning',
    summary: 'No node returns the next block of {{ $labels.chain }}',
    meaning: 'All nodes refuse the logs and the receipts of a block, usually because it is too large for their limits.',
    action: 'Add a node with a larger limit to CHAIN_NODES.',
    expr: 'max by (chain) (playline_chain_indexer_too_large) == 1',
    forSeconds: 0,
  },
  {
    name: 'IndexerSilent',
    severity: 'warning',
    summary: 'The indexer of {{ $labels.chain }} has waited for {{ $value | humanizeDuration }}',
    meaning: 'A step of the indexer is overdue, because nodes or brokers do not respond.',
    action: 'Run `npm run chain -- status`, and check the nodes in CHAIN_NODES.',
    expr: 'max by (chain) (playline_chain_indexer_silent_seconds) > 30',
    forSeconds: 0,
  },
  {
    name: 'ChainNodeLags',
    severity: 'warning',
    summary: 'A node of {{ $labels.chain }} lags: {{ $labels.node }}',
    meaning: 'A node does not respond, or lacks blocks that other nodes have. It is used as a last resort.',
    action: 'Repair or replace the node.',
    expr: 'playline_chain_indexer_node_lags == 1',
    forSeconds: 15,
  },
  {
    name: 'ChainStalled',
    severity: 'warning',
    summary: '{{ $labels.chain }} has had no block for {{ $value | humanizeDuration }}',
    meaning: 'No node has a new block for longer than `stillAfterS` of the chain.',
    action: 'Compare with a public explorer. If the chain continues, all nodes are behind: add a node.',
    expr: 'max by (chain) (playline_chain_indexer_head_unchanged_seconds) > 0',
    forSeconds: 15,
  },
  {
    name: 'ChainHalted',
    severity: 'critical',
    summary: '{{ $labels.chain }} was reorganised below its last final block',
    meaning: 'No node has a block that was final and is indexed. Nothing more of the chain is indexed.',
    action:
      'Compare the nodes with a public explorer. The indexer continues when a node has the block again. If the chain really replaced final blocks, reindex it ([chain indexer](../services/chain-indexer/README.md)).',
    expr: 'max by (chain) (playline_chain_indexer_halted) == 1',
    forSeconds: 0,
  },
  {
    name: 'FeedBehind',
    severity: 'warning',
    summary: 'Activity feeds end {{ $value | humanizeDuration }} ago',
    meaning: 'The watermark of a partition has not moved for 85 s, so pages of the chain API end earlier.',
    action: 'Run `npm run logs -- activity-writer --level warn --since 10m`.',
    // Idle partitions advance every 64 s, and a sample is up to 15 s old. A previous owner of a partition still exposes its last value.
    expr: 'time() - min(max by (partition) (playline_activity_writer_watermark_timestamp_seconds)) > 85',
    forSeconds: 0,
  },
  {
    name: 'MintsBlocked',
    severity: 'critical',
    summary: 'A mint of {{ $labels.signer }} on {{ $labels.chain }} has waited for {{ $value | humanizeDuration }}',
    meaning: 'An asset is unsettled ten minutes after its request. Later requests of the signer wait as well.',
    action: 'Run `npm run mints -- signers` for the reason: fees, balance, nodes, or a stuck nonce.',
    expr: 'max by (chain, signer) (playline_minter_oldest_pending_seconds) > 600',
    forSeconds: 0,
  },
  {
    name: 'SignerBalanceLow',
    severity: 'warning',
    summary: '{{ $labels.signer }} has {{ $value }} left on {{ $labels.chain }}',
    meaning: 'The balance of a signer is below 0.05 of the native currency. Mints wait when it is used up.',
    action: 'Send funds to the address of the signer (`npm run mints -- signers`).',
    expr: 'min by (chain, signer) (playline_minter_funds_ether) < 0.05',
    forSeconds: 0,
  },
  // Alerts of projects
  {
    name: 'ProjectAlertsStopped',
    severity: 'warning',
    summary: 'The alerts of projects are not evaluated',
    meaning:
      'No portal has completed an evaluation within a minute, although one is running. Alerts of projects neither fire nor clear.',
    action:
      'Run `npm run logs -- portal --level warn --since 10m`. `playline_portal_alert_evaluations_total` shows whether evaluations fail or are too late. If there are none, another process keeps the turn: see `alerts:turn` in Redis.',
    // The first evaluation of a new process may fail, and Prometheus may just have started.
    expr: `(sum(increase(playline_portal_alert_evaluations_total{outcome="completed"}[1m])) or vector(0)) == 0 and on () count(${PORTAL_START} == ${PORTAL_START} offset 2m)`,
    forSeconds: 0,
  },
];
