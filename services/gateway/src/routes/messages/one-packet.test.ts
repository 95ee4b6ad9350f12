import { connect } from 'node:net';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { KEY_HEADER, MESSAGES, message, openGateway } from '../../test/open-gateway.ts';

const REQUESTS = 150;

/** A request with one message. */
function requestOf(key: string): string {
  const body = JSON.stringify({ messages: [message()] });
  const lines = [
    `POST ${MESSAGES} HTTP/1.1`,
    'host: gateway',
    'content-type: application/json',
    `${KEY_HEADER}: ${key}`,
  ];
  return `${lines.join('\r\n')}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** Sends them in one write on one connection. @returns the status of each */
async function sendAtOnce(port: number, requests: readonly string[]): Promise<string[]> {
  let text = '';
  const socket = connect(port, '127.0.0.1', () => socket.write(requests.join('')));
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  const statuses = () => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status = '']) => status);
  await until('every request is answered', () => statuses().length === requests.length, 20_000);
  socket.destroy();
  return statuses();
}

it('admits as many requests from one packet as one by one, because each is charged when it is admitted', async () => {
  // The bucket refills by 5 messages a second: too slow to matter while this runs.
  const { port, key, producer } = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 5, RATE_LIMIT_BURST: 10 });
  const statuses = await sendAtOnce(
    port,
    Array.from({ length: REQUESTS }, () => requestOf(key)),
  );
  const stored = statuses.filter((status) => status === '200').length;
  expect(stored).toBeGreaterThanOrEqual(10);
  expect(stored).toBeLessThan(20);
  expect(statuses.filter((status) => status === '429')).toHaveLength(REQUESTS - stored);
  expect(producer.sent).toHaveLength(stored);
});
