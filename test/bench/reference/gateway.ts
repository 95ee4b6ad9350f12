// The reference: an endpoint that enforces every rule of the contract, built as in the express, zod and kafkajs guides.
import { hash, randomBytes } from 'node:crypto';
import { EVENT_AGE_MAX_MS, EVENT_AHEAD_MAX_MS, type Message } from '@playline/contracts';
import { validateBatch } from '@playline/contracts/test';
import express from 'express';
import { Kafka } from 'kafkajs';

const settings = process.env;
const keys = new Set([hash('sha256', settings.BENCH_KEY ?? '')]);
const producer = new Kafka({ clientId: 'reference', brokers: (settings.KAFKA_BROKERS ?? '').split(',') }).producer();
await producer.connect();

/** Computes an identity key in the same way as the gateway. */
const keyOf = (kind: string, id: string) =>
  hash('sha256', `${settings.IDENTITY_PEPPER}demo\0${kind}\0${id.trim()}`).slice(0, 32);

function ownerOf({ userId, identityType, anonymousId }: Message): string | null {
  if (userId !== undefined) return keyOf(identityType ?? 'untyped', userId);
  return anonymousId === undefined ? null : keyOf('anonymous', anonymousId);
}

const isLink = ({ type }: Message) => type === 'identify' || type === 'alias';

const app = express();
app.use(express.json({ limit: '1mb' }));
app.get('/readyz', (_request, response) => response.json({ ready: true }));
app.post('/v1/audience/messages', async (request, response) => {
  const traceId = randomBytes(16).toString('hex');
  response.set({ 'x-trace-id': traceId, 'access-control-allow-origin': '*' });
  if (!keys.has(hash('sha256', request.get('x-service-publishable-key') ?? '')))
    return response.status(401).json({ code: 'UNAUTHORISED_REQUEST', trace_id: traceId });
  const texts: string[] = (request.body?.messages ?? []).map((message: unknown) => JSON.stringify(message));
  const nowMs = Date.now();
  const validated = validateBatch(request.body, {
    window: { fromMs: nowMs - EVENT_AGE_MAX_MS, toMs: nowMs + EVENT_AHEAD_MAX_MS },
    sources: texts.map((text) => ({ bytes: Buffer.byteLength(text), messageIdText: '' })),
  });
  if (validated.kind === 'refused')
    return response.status(400).json({ code: 'VALIDATION_ERROR', trace_id: traceId, details: validated.details });
  const { accepted } = validated;
  const links = accepted.filter(({ message }) => isLink(message));
  await producer.sendBatch({
    acks: -1,
    topicMessages: [
      {
        topic: settings.BENCH_TOPIC ?? '',
        messages: accepted.map(({ index, message }) => ({ key: ownerOf(message), value: texts[index] ?? '' })),
      },
      {
        topic: settings.BENCH_LINKS_TOPIC ?? '',
        messages: links.map(({ index }) => ({ key: 'demo', value: texts[index] ?? '' })),
      },
    ],
  });
  return response.status(accepted.length > 0 ? 200 : 400).json(validated.response);
});
app.listen(Number(settings.HTTP_PORT), '127.0.0.1');
