import { type Dashboard, growth, orZero, perSecond, quantile, RESPONSE_TIMES, RESPONSES } from './panel.ts';

const ACCEPTED = perSecond('playline_gateway_messages_accepted_total', 'environment');
const REJECTED = perSecond('playline_gateway_messages_rejected_total', 'environment');

export const INGEST: Dashboard = {
  title: 'Ingest',
  description: 'Whether the gateway accepts messages, how fast, and which messages and requests it refuses.',
  panels: [
    {
      title: 'Accepted messages',
      unit: 'cps',
      description:
        'Messages acknowledged to clients. If an environment drops to zero, its game sends nothing, or its requests fail (next panels).',
      queries: [[orZero(ACCEPTED, 'environment'), '{{environment}}']],
    },
    {
      title: 'Responses by status',
      unit: 'reqps',
      description: 'Clients repeat requests after 429 and 5xx. They drop the messages after any other 4xx.',
      related: ['IngestErrors', 'RateLimited'],
      queries: [[orZero(perSecond(`${RESPONSES}{service="gateway"}`, 'status'), 'status'), '{{status}}']],
    },
    {
      title: 'Response time of messages',
      unit: 's',
      description:
        'If one instance is slow, replace it. If all are slow, compare with the acknowledgement by Kafka; otherwise, add gateways.',
      queries: [
        [
          quantile(0.5, `${RESPONSE_TIMES}{service="gateway",route="/v1/audience/messages"}`, 'service'),
          'p50 of all instances',
        ],
        [
          quantile(0.99, `${RESPONSE_TIMES}{service="gateway",route="/v1/audience/messages"}`, 'instance'),
          'p99 {{instance}}',
        ],
      ],
    },
    {
      title: 'Acknowledgement by Kafka (p99)',
      unit: 's',
      description: 'Time until all in-sync replicas have stored a batch. Clients wait for this time.',
      alert: 'SlowPublish',
      related: ['KafkaUnavailable'],
      queries: [[quantile(0.99, 'playline_gateway_publish_duration_seconds_bucket', 'instance'), '{{instance}}']],
    },
    {
      title: 'Bytes in flight',
      unit: 'bytes',
      description:
        'Bytes received and not yet acknowledged. At BYTES_IN_FLIGHT_MAX (16 MiB by default), requests have a 429 response: add gateways, or make Kafka faster.',
      redFrom: 16_777_216,
      queries: [['playline_gateway_in_flight_bytes', '{{instance}}']],
    },
    {
      title: 'Requests over a limit',
      unit: 'reqps',
      description: 'Requests with a 429 response, by limit. Increase the limit of the project, or stop the sender.',
      related: ['RateLimited'],
      queries: [[orZero(perSecond('playline_gateway_rate_limited_total', 'limit'), 'limit'), '{{limit}}']],
    },
    {
      title: 'Rate limits are shared',
      unit: 'bool_yes_no',
      description: 'No: a gateway cannot use Redis and applies each limit on its own.',
      alert: 'RateLimitsNotShared',
      isStat: true,
      queries: [['playline_gateway_rate_limit_shared', '{{instance}}']],
    },
    {
      title: 'Rejected messages',
      unit: 'percentunit',
      description: 'The fraction of messages that are invalid and therefore not stored.',
      alert: 'MessagesRejected',
      queries: [[orZero(`${REJECTED} / (${ACCEPTED} + ${REJECTED})`, 'environment'), '{{environment}}']],
    },
    {
      title: 'Errors by code',
      unit: 'cps',
      description:
        'The errors in rejected messages. A new code usually belongs to a new client version; the page Rejections of the portal has examples.',
      related: ['MessagesRejected'],
      queries: [[orZero(perSecond('playline_gateway_rejections_total', 'code'), 'code'), '{{code}}']],
    },
    {
      title: 'Lost details within an hour',
      unit: 'short',
      description:
        'Rejection errors and counts of key usage that were not stored, because Kafka or Redis was slow or unavailable. The portal shows too few of them. Messages are not affected.',
      queries: [
        [orZero(growth('playline_gateway_rejections_dropped_total', 'reason'), 'reason'), 'rejections: {{reason}}'],
        [growth('playline_gateway_usage_lost_total', 'service'), 'key usage'],
      ],
    },
  ],
};
