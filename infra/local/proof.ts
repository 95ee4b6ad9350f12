// The test event of a start.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { sendStatement } from '@playline/stores';
import { publishableKeyHeaderOf, type StackFile } from './stack-file.ts';

/** Includes the joining of all consumer groups. */
const CROSSING_MAX_MS = 60_000;
const POLL_MS = 50;

async function postMessage(file: StackFile, messageId: string): Promise<void> {
  const message = {
    type: 'track',
    messageId,
    eventTimestamp: new Date().toISOString(),
    anonymousId: 'stack-proof',
    eventName: 'stack_started',
    test: true,
  };
  const response = await fetch(`${file.gateway}/v1/audience/messages`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      [publishableKeyHeaderOf(file)]: file.keys?.development.publishable ?? '',
    },
    body: JSON.stringify({ messages: [message] }),
    signal: AbortSignal.timeout(10_000),
  });
  const body = await response.text();
  if (!response.ok)
    throw new Error(`the gateway answered the first batch with ${response.status}: ${body.slice(0, 500)}`);
}

/** Reads the view that analysts use. */
async function countRows(file: StackFile, messageId: string): Promise<number> {
  const answer = await sendStatement(file.clickhouse, {
    body: 'SELECT count() FROM events_exact WHERE message_id = {id:UUID} FORMAT TSV',
    settings: { param_id: messageId, max_execution_time: '10' },
    deadlineMs: 15_000,
  });
  return Number(await answer.text());
}

/**
 * Posts one message and waits until it is in ClickHouse.
 * @returns milliseconds from the response to the row
 */
export async function proveRoundTrip(file: StackFile): Promise<number> {
  const messageId = randomUUID();
  await postMessage(file, messageId);
  const accepted = performance.now();
  while ((await countRows(file, messageId)) === 0) {
    if (performance.now() - accepted > CROSSING_MAX_MS)
      throw new Error(`the accepted message ${messageId} is not in ClickHouse after ${CROSSING_MAX_MS / 1000} s`);
    await delay(POLL_MS);
  }
  return performance.now() - accepted;
}
