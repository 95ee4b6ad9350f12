import type { RejectionCode } from '@playline/contracts';
import type { ApplyOutcome } from '@playline/people';
import type { Metrics } from '@playline/runtime';

export type GatewayMetrics = ReturnType<typeof createGatewayMetrics>;

/** From one round trip to the publish deadline. */
const PUBLISH_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** Each label has a small, fixed set of values, none of which is an id or message content. */
export function createGatewayMetrics(metrics: Metrics) {
  const accepted = metrics.counter('playline_gateway_messages_accepted_total', 'Messages acknowledged to clients');
  const rejected = metrics.counter('playline_gateway_rejections_total', 'Rejection errors by code', ['code']);
  const batches = metrics.counter('playline_gateway_batches_total', 'Batches, by whether all messages were accepted', [
    'verdict',
  ]);
  const publish = metrics.histogram('playline_gateway_publish_duration_seconds', 'Time from send to acknowledgement', {
    bucketsSeconds: PUBLISH_BUCKETS_S,
  });
  const consents = metrics.counter('playline_gateway_consents_total', 'Logged consent changes, by outcome', [
    'outcome',
  ]);
  // Looking up labels costs more than incrementing, and every request increments one of these counters.
  const [withoutRejections, withRejections] = [batches.labels('accepted'), batches.labels('rejections')];
  return {
    onAccepted: (messages: number) => accepted.inc(messages),
    onRejected: (code: RejectionCode, errors: number) => rejected.inc({ code }, errors),
    onBatch: (hasRejections: boolean) => (hasRejections ? withRejections : withoutRejections).inc(),
    onPublished: (seconds: number) => publish.observe(seconds),
    onConsent: (outcome: ApplyOutcome) => consents.inc({ outcome }),
  };
}
