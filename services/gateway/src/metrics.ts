import type { RejectionCode } from '@playline/contracts';
import type { ApplyOutcome } from '@playline/people';
import type { Metrics } from '@playline/runtime';

/** What the gateway counts. Labels are few and fixed: no ids, no content. */
export interface GatewayMetrics {
  onAnswer(status: number): void;
  onAccepted(messages: number): void;
  onRejected(code: RejectionCode, errors: number): void;
  /** Counts a batch, by whether any of its messages was rejected. */
  onBatch(hasRejections: boolean): void;
  onPublished(seconds: number): void;
  onConsent(outcome: ApplyOutcome): void;
}

/** From one round trip on an idle network to the publish deadline. */
const PUBLISH_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

export function createGatewayMetrics(metrics: Metrics): GatewayMetrics {
  const requests = metrics.counter('gateway_requests_total', 'Answers by status', ['status']);
  const accepted = metrics.counter('gateway_messages_accepted_total', 'Messages acknowledged to clients');
  const rejected = metrics.counter('gateway_rejections_total', 'Rejection errors by code', ['code']);
  const batches = metrics.counter('gateway_batches_total', 'Batches by whether all messages were accepted', [
    'verdict',
  ]);
  const publish = metrics.histogram('gateway_publish_seconds', 'From send to acknowledgement', {
    bucketsSeconds: PUBLISH_BUCKETS_S,
  });
  const consents = metrics.counter('gateway_consents_total', 'Consent changes on the log, by outcome', ['outcome']);
  // Looking a label up costs more than counting, and each request counts these two.
  const [clean, mixed] = [batches.labels('accepted'), batches.labels('rejections')];
  const ok = requests.labels('200');
  return {
    onAnswer: (status) => (status === 200 ? ok : requests.labels(String(status))).inc(),
    onAccepted: (messages) => accepted.inc(messages),
    onRejected: (code, errors) => rejected.inc({ code }, errors),
    onBatch: (hasRejections) => (hasRejections ? mixed : clean).inc(),
    onPublished: (seconds) => publish.observe(seconds),
    onConsent: (outcome) => consents.inc({ outcome }),
  };
}
