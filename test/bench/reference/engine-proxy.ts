/** Floor: a bare node:http server that forwards rows from ClickHouse, starting at the time in the query string. */
import { Agent, createServer, request as sendRequest } from 'node:http';

const { ENGINE_URL, ENGINE_USER, ENGINE_PASSWORD, STATEMENT = '', HTTP_PORT } = process.env;
const agent = new Agent({ keepAlive: true });
const headers = { 'x-clickhouse-user': ENGINE_USER, 'x-clickhouse-key': ENGINE_PASSWORD };

createServer((request, response) => {
  const at = new URL(request.url ?? '', 'http://127.0.0.1').searchParams.get('at') ?? '';
  const sent = sendRequest(ENGINE_URL ?? '', { agent, method: 'POST', headers }, (upstream) => {
    const chunks: Buffer[] = [];
    upstream.on('data', (chunk: Buffer) => chunks.push(chunk));
    upstream.on('end', () => {
      const body = Buffer.concat(chunks);
      response.writeHead(upstream.statusCode ?? 500, { 'content-length': body.length }).end(body);
    });
  });
  sent.on('error', () => response.writeHead(500).end());
  sent.end(STATEMENT.replaceAll('{at}', at));
}).listen(Number(HTTP_PORT), '127.0.0.1');
