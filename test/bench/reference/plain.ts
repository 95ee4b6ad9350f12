// The plain reference: the simplest server from the express and kafkajs guides, without validation.
import express from 'express';
import { Kafka } from 'kafkajs';

const settings = process.env;
const producer = new Kafka({ clientId: 'plain', brokers: (settings.KAFKA_BROKERS ?? '').split(',') }).producer();
await producer.connect();

const app = express();
app.use(express.json({ limit: '1mb' }));
app.get('/readyz', (_request, response) => response.json({ ready: true }));
app.post('/v1/audience/messages', async (request, response) => {
  if (request.get('x-service-publishable-key') !== settings.BENCH_KEY) return response.status(401).json({});
  const messages: { anonymousId?: string }[] = request.body.messages;
  await producer.send({
    topic: settings.BENCH_TOPIC ?? '',
    acks: -1,
    messages: messages.map((message) => ({ key: message.anonymousId ?? null, value: JSON.stringify(message) })),
  });
  return response.json({ success: true });
});
app.listen(Number(settings.HTTP_PORT), '127.0.0.1');
