// Floor for accepting mint requests: reads the body, publishes `?records=` records of the same size with the same
// producer, and sends the same response after all in-sync replicas have acknowledged the records. Does not check keys,
// parse bodies or create claims.
import { createServer, type ServerResponse } from 'node:http';
import { openProducer } from '@playline/stream/kafka';

const { KAFKA_BROKERS = '', BENCH_TOPIC: topic = '', RECORD = '', RECORD_KEY = '', RESPONSE = '' } = process.env;
const producer = await openProducer({ brokers: KAFKA_BROKERS.split(','), clientId: 'floor', topics: [topic] });
const record = { topic, key: Buffer.from(RECORD_KEY), value: Buffer.from(RECORD, 'base64') };
const recordsByCount = new Map([1, 100].map((count) => [count, Array.from({ length: count }, () => record)]));

function publish(count: number, response: ServerResponse): void {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(RESPONSE) };
  producer.send(recordsByCount.get(count) ?? [], (fault) => {
    if (fault === null) response.writeHead(202, headers).end(RESPONSE);
    else response.writeHead(500, { 'content-length': 0 }).end();
  });
}

createServer((request, response) => {
  const count = Number(new URL(request.url ?? '', 'http://127.0.0.1').searchParams.get('records') ?? 0);
  request.on('data', () => {});
  request.on('end', () => {
    if (count > 0) return publish(count, response);
    response.writeHead(200, { 'content-length': 0 }).end();
  });
}).listen(Number(process.env.HTTP_PORT), '127.0.0.1');
