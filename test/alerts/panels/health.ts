import { type Dashboard, growth, orZero, perSecond, quantile, RESPONSE_TIMES, RESPONSES } from './panel.ts';

const UP = 'up{job="playline"}';
const SERVER_ERRORS = perSecond(`${RESPONSES}{status=~"5.."}`, 'service');
const ALL_RESPONSES = perSecond(RESPONSES, 'service');

export const HEALTH: Dashboard = {
  title: 'Health',
  description: 'Whether every service is up, ready and fast, and which instance is not.',
  panels: [
    {
      title: 'Firing alerts',
      unit: 'short',
      description:
        'Alerts that fire now. infra/ALERTS.md has a section for each alert with its meaning and what to do.',
      redFrom: 1,
      isStat: true,
      queries: [[orZero('count by (alertname) (ALERTS{alertstate="firing"})', 'alertname'), '{{alertname}}']],
    },
    {
      title: 'Instances that respond',
      unit: 'short',
      description:
        'All services of the last day. 0: no instance can be scraped, or all are stopped, so that the name of the service has no address.',
      alert: 'ServiceDown',
      isStat: true,
      queries: [[`sum by (service) (${UP}) or 0 * count by (service) (last_over_time(${UP}[1d]))`, '{{service}}']],
    },
    {
      title: 'Failing checks',
      unit: 'short',
      description:
        'Checks of `/readyz` that fail, by instance. A degraded process works, except for the part that the check names.',
      related: [
        ...['ServiceNotReady', 'ServiceDegraded', 'ClockSkew'],
        ...['KafkaUnavailable', 'ClickHouseUnavailable', 'RedisEmptied'],
      ],
      redFrom: 1,
      queries: [
        [orZero('(1 - playline_ready) > 0', 'service'), '{{service}} {{instance}} {{check}}'],
        [orZero('playline_degraded > 0', 'service'), 'degraded: {{service}} {{instance}} {{check}}'],
      ],
    },
    {
      title: 'Redis accepts writes',
      unit: 'bool_yes_no',
      description: 'No: Redis is full, read-only or unavailable for a process of the service.',
      alert: 'RedisRejectsWrites',
      isStat: true,
      queries: [['min by (service) (playline_redis_takes_writes)', '{{service}}']],
    },
    {
      title: 'Running versions',
      unit: 'short',
      description:
        'Processes per version. Several versions are normal only during an upgrade: complete it, or roll it back.',
      isStat: true,
      queries: [['count by (version) (playline_build_info)', '{{version}}']],
    },
    {
      title: 'Restarts within an hour',
      unit: 'short',
      description:
        'A process that restarts repeatedly exits soon after its start. One restart is normal during an upgrade.',
      alert: 'ServiceRestarts',
      queries: [
        [
          'sum by (service, instance) (changes(process_start_time_seconds{job="playline"}[1h]))',
          '{{service}} {{instance}}',
        ],
      ],
    },
    {
      title: 'Failed requests',
      unit: 'percentunit',
      description: 'The fraction of requests with a 5xx response.',
      alert: 'IngestErrors',
      queries: [[`(${SERVER_ERRORS} or 0 * ${ALL_RESPONSES}) / ${ALL_RESPONSES}`, '{{service}}']],
    },
    {
      title: 'Response time (p99)',
      unit: 's',
      description:
        'A slow gateway usually waits for Kafka (dashboard Ingest), a slow portal or chain API for ClickHouse. If a process uses a whole core, add instances.',
      queries: [[quantile(0.99, RESPONSE_TIMES, 'service'), '{{service}}']],
    },
    {
      title: 'Evaluations of the alerts of projects, in five minutes',
      unit: 'short',
      description: 'About ten are completed, by all portals together.',
      related: ['ProjectAlertsStopped'],
      queries: [[orZero(growth('playline_portal_alert_evaluations_total', 'outcome', '5m'), 'outcome'), '{{outcome}}']],
    },
    {
      title: 'CPU',
      unit: 'percentunit',
      description:
        'Above 90 % of a core, the JavaScript thread of a process is busy and its work waits: add instances, up to one per partition for consumers.',
      redFrom: 0.9,
      queries: [['rate(process_cpu_seconds_total{job="playline"}[$__rate_interval])', '{{service}} {{instance}}']],
    },
    {
      title: 'Longest event loop delay',
      unit: 's',
      description:
        'A process did nothing else for this time. From a second on, requests and readiness checks time out: check the CPU and memory of the machine.',
      redFrom: 1,
      queries: [['nodejs_eventloop_lag_max_seconds{job="playline"}', '{{service}} {{instance}}']],
    },
    {
      title: 'Memory',
      unit: 'bytes',
      description:
        'A process that reaches the limit of its container (512 MiB in docker-compose.yml) is killed: increase the limit. Growth that never ends is a bug.',
      queries: [['process_resident_memory_bytes{job="playline"}', '{{service}} {{instance}}']],
    },
  ],
};
