import { createRequire } from 'node:module';

interface RequestQueue {
  pending: unknown[];
  throttleCheckTimeoutId: NodeJS.Timeout | null;
  checkPendingRequests(): void;
}

const CHECK_INTERVAL_MS = 10;

/**
 * Patches kafkajs 2.2.4, which sets a negative timeout when no request is queued, so that Node 24 prints a warning.
 * Must be called before the first connection. The patch reads no clock, because a clock that is set back would prolong
 * the wait.
 */
export function patchKafkaTimer(): void {
  const require = createRequire(import.meta.url);
  const { prototype } = require('kafkajs/src/network/requestQueue') as {
    prototype: { scheduleCheckPendingRequests(this: RequestQueue): void };
  };
  prototype.scheduleCheckPendingRequests = function schedule() {
    if (this.throttleCheckTimeoutId !== null || this.pending.length === 0) return;
    this.throttleCheckTimeoutId = setTimeout(() => {
      this.throttleCheckTimeoutId = null;
      this.checkPendingRequests();
    }, CHECK_INTERVAL_MS);
  };
}
