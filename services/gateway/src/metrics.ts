import type { RejectionCode } from '@playline/contracts';
import type { ApplyOutcome } from '@playline/people';
import type { Metrics } from '@playline/runtime';

export type GatewayMetrics = ReturnType<typeof createGatewayMetrics>;

/** From one round trip to the publish deadline. */
const PUBLISH_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** Environments with their own label value in this process. Further environments share `other`. */
export const ENVIRONMENTS_MAX = 100;
const OTHER_ENVIRONMENTS = 'other';

/** Each label has a limited number of values. No label contains message content, or any id except environment ids. */
export function createGatewayMetrics(metrics: Metrics) {
  const countMessages = createMessageCount(metrics);
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
    onMessages: countMessages,
    onRejected: (code: RejectionCode, errors: number) => rejected.inc({ code }, errors),
    onBatch: (hasRejections: boolean) => (hasRejections ? withRejections : withoutRejections).inc(),
    onPublished: (seconds: number) => publish.observe(seconds),
    onConsent: (outcome: ApplyOutcome) => consents.inc({ outcome }),
  };
}

function createMessageCount(metrics: Metrics) {
  const accepted = metrics.counter('playline_gateway_messages_accepted_total', 'Messages acknowledged to clients', [
    'environment',
  ]);
  const rejected = metrics.counter('playline_gateway_messages_rejected_total', 'Messages rejected in responses', [
    'environment',
  ]);
  const create = (environment: string) => ({
    accepted: accepted.labels(environment),
    rejected: rejected.labels(environment),
  });
  const others = create(OTHER_ENVIRONMENTS);
  // A label lookup costs more than the increment.
  const byEnvironment = new Map<string, typeof others>();
  const countersOf = (environmentId: string) => {
    const found = byEnvironment.get(environmentId);
    if (found !== undefined) return found;
    const created = byEnvironment.size < ENVIRONMENTS_MAX ? create(environmentId) : others;
    if (created !== others) byEnvironment.set(environmentId, created);
    return created;
  };
  return (environmentId: string, messages: { readonly accepted: number; readonly rejected: number }) => {
    const counters = countersOf(environmentId);
    counters.accepted.inc(messages.accepted);
    if (messages.rejected > 0) counters.rejected.inc(messages.rejected);
  };
}
