import { connect } from 'node:net';
import { until } from '@playline/testkit';
import { describe, expect, it } from 'vitest';
import { expectEnvelope, KEY_HEADER, MESSAGES, message, openGateway } from '../../test/open-gateway.ts';

const KIB = 1024;
/** A batch of about 20 KiB. */
const large = () => ({ messages: [message({ properties: { text: 'x'.repeat(20 * KIB) } })] });

const headOf = (key: string) => [
  `POST ${MESSAGES} HTTP/1.1`,
  'host: gateway',
  'content-type: application/json',
  `${KEY_HEADER}: ${key}`,
];

/** Sends the lines and gives back what comes first, whether or not the request is whole. */
async function firstAnswer(port: number, lines: string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1', () => socket.write(lines.join('\r\n')));
  const answer = await new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(chunk.toString())));
  socket.destroy();
  return answer;
}

describe('429', () => {
  it('answers past the bound on bytes in flight, with whole seconds to wait', async () => {
    const { post, producer } = await openGateway({ BYTES_IN_FLIGHT_MAX: 50 * KIB });
    producer.mode = 'hold';
    const inFlight = [post(large()), post(large())];
    await until('two batches are in flight', () => producer.sent.length === 2);
    const answer = await post(large());
    expect(answer.status).toBe(429);
    expect(answer.headers.get('retry-after')).toMatch(/^[1-9][0-9]*$/);
    await expectEnvelope(answer, 'TOO_MANY_REQUESTS_ERROR');
    for (const { done } of producer.sent) done(null);
    for (const response of await Promise.all(inFlight)) expect(response.status).toBe(200);
    producer.mode = 'acknowledge';
    expect((await post(large())).status).toBe(200);
  });

  it('comes before a byte of the body is sent', async () => {
    const { post, producer, port, key } = await openGateway({ BYTES_IN_FLIGHT_MAX: 50 * KIB });
    producer.mode = 'hold';
    const inFlight = [post(large()), post(large())];
    await until('two batches are in flight', () => producer.sent.length === 2);
    const answer = await firstAnswer(port, [...headOf(key), `content-length: ${20 * KIB}`, '', '']);
    expect(answer).toMatch(/^HTTP\/1\.1 429 /);
    for (const { done } of producer.sent) done(null);
    await Promise.all(inFlight);
  });

  it('answers a body without a length as soon as it has outgrown the room', async () => {
    const { post, producer, port, key } = await openGateway({ BYTES_IN_FLIGHT_MAX: 100 * KIB });
    producer.mode = 'hold';
    const inFlight = post(large());
    await until('a batch is in flight', () => producer.sent.length === 1);
    const chunk = `2800\r\n${' '.repeat(10 * KIB)}\r\n`;
    // The body never ends: the answer cannot have waited for that.
    const lines = [...headOf(key), 'transfer-encoding: chunked', '', chunk.repeat(20)];
    expect(await firstAnswer(port, lines)).toMatch(/^HTTP\/1\.1 429 /);
    producer.sent[0]?.done(null);
    expect((await inFlight).status).toBe(200);
  });

  it('never answers a lone request, however small the bound', async () => {
    const { post } = await openGateway({ BYTES_IN_FLIGHT_MAX: 1 });
    expect((await post(large())).status).toBe(200);
  });
});
