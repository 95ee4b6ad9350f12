/**
 * Floor: a bare node:http server that requests rows as text from ClickHouse, by the time in its own query string, and
 * passes the bytes on. It checks, parses and joins nothing.
 */
import { Agent, request as ask, createServer } from 'node:http';

const { ENGINE_URL, ENGINE_USER, ENGINE_PASSWORD, STATEMENT = '', HTTP_PORT } = process.env;
const agent = new Agent({ keepAlive: true });
const headers = { 'x-clickhouse-user': ENGINE_USER, 'x-clickhouse-key': ENGINE_PASSWORD };

createServer((request, response) => {
  const at = new URL(request.url ?? '', 'http://127.0.0.1').searchParams.get('at') ?? '';
  const asked = ask(ENGINE_URL ?? '', { agent, method: 'POST', headers }, (answer) => {
    const chunks: Buffer[] = [];
    answer.on('data', (chunk: Buffer) => chunks.push(chunk));
    answer.on('end', () => {
      const body = Buffer.concat(chunks);
      response.writeHead(answer.statusCode ?? 500, { 'content-length': body.length }).end(body);
    });
  });
  asked.on('error', () => response.writeHead(500).end());
  asked.end(STATEMENT.replaceAll('{at}', at));
}).listen(Number(HTTP_PORT), '127.0.0.1');
