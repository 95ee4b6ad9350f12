import { createBody } from '../messages.ts';
import { startMeter } from './meter.ts';

const PREPARED_MESSAGES = 20_000;
const size = Number(process.env.BATCH_SIZE);
const now = new Date();
const bodies = Array.from({ length: PREPARED_MESSAGES / size }, (_, index) => createBody(index * size, size, now));

function parseFor(ms: number): number {
  const endMs = performance.now() + ms;
  let events = 0;
  for (let n = 0; performance.now() < endMs; n += 1)
    events += JSON.parse(bodies[n % bodies.length]?.toString() ?? '{}').messages.length;
  return events;
}

parseFor(500);
const meter = startMeter();
meter.send(parseFor(2_000));
