import type { SharedLimiterOptions } from '@playline/rate-limit';
import type { Logger, Metrics } from '@playline/runtime';

/** Builds what tells operators whether the limits are held together or by each process alone. */
export function createSharingReport(metrics: Metrics, logger: Logger): NonNullable<SharedLimiterOptions['onShared']> {
  const gauge = metrics.gauge(
    'gateway_rate_limit_shared',
    '1 while the limit of a key holds on all processes together',
  );
  gauge.set(1);
  return (shared, fault) => {
    gauge.set(shared ? 1 : 0);
    if (shared) logger.info('rate limits are shared again');
    else logger.warn({ error: fault }, 'rate limits are held by this process alone');
  };
}
