import { createRequire } from 'node:module';

interface RequestQueue {
  pending: unknown[];
  throttleCheckTimeoutId: NodeJS.Timeout | null;
  checkPendingRequests(): void;
}

/** As kafkajs waits between two looks at requests that wait for a free place. */
const CHECK_INTERVAL_MS = 10;

/**
 * kafkajs 2.2.4 arms a timer with a negative time whenever nothing waits, which Node 24 reports as a warning on standard
 * error. Arms it only when something waits, and asks no clock: one that is set back would make it wait as long. Call
 * before the first connection.
 */
export function mendKafkaTimer(): void {
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
