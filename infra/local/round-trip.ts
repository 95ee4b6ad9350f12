// Sends the test event when a stack starts.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { sendStatement } from '@playline/stores';
import { publishableKeyHeaderOf, type StackFile } from './stack-file.ts';

/** Includes the time for all consumer groups to join. */
const LATENCY_MAX_MS = 60_000;
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
    throw new Error(`the gateway responded to the test event with ${response.status}: ${body.slice(0, 500)}`);
}

/** Counts the message's rows in events_exact, the view that analysts use. */
async function countRows(file: StackFile, messageId: string): Promise<number> {
  const response = await sendStatement(file.clickhouse, {
    body: 'SELECT count() FROM events_exact WHERE message_id = {id:UUID} FORMAT TSV',
    settings: { param_id: messageId, max_execution_time: '10' },
    deadlineMs: 15_000,
  });
  return Number(await response.text());
}

/**
 * Posts one message and waits until it is in ClickHouse.
 * @returns milliseconds between the gateway's response and the row
 */
export async function verifyRoundTrip(file: StackFile): Promise<number> {
  const messageId = randomUUID();
  await postMessage(file, messageId);
  const acceptedAt = performance.now();
  while ((await countRows(file, messageId)) === 0) {
    if (performance.now() - acceptedAt > LATENCY_MAX_MS)
      throw new Error(`the accepted message ${messageId} is not in ClickHouse after ${LATENCY_MAX_MS / 1000} s`);
    await delay(POLL_MS);
  }
  return performance.now() - acceptedAt;
}
