/** Floor: only JSON.parse of the bodies that the load sends. */
import { createBody } from '../messages.ts';

/** Long enough for the code to be compiled. */
const WARM_UP_MS = 500;
const WINDOW_MS = 2_000;
/** As many messages as the load prepares. */
const PREPARED_MESSAGES = 20_000;

const batchSize = Number(process.env.BATCH_SIZE);
const now = new Date();
const bodies = Array.from({ length: PREPARED_MESSAGES / batchSize }, (_, index) =>
  createBody(index * batchSize, batchSize, now),
);

function parseFor(ms: number): number {
  const end = performance.now() + ms;
  let events = 0;
  for (let n = 0; performance.now() < end; n += 1) {
    const body = bodies[n % bodies.length];
    events += JSON.parse(body?.toString() ?? '{}').messages.length;
  }
  return events;
}

parseFor(WARM_UP_MS);
const before = process.cpuUsage();
const events = parseFor(WINDOW_MS);
const { user, system } = process.cpuUsage(before);
process.send?.({ events, cpuSeconds: (user + system) / 1e6 });
process.disconnect?.();
