// A process that adds TLS, and optionally a login, to an HTTP store that supports neither in this stack: ClickHouse
// (clickhouse-local) and the registry. The argument is the path of a settings file.
import { timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { RelaySettings } from './tls-relays.ts';

const settings = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as RelaySettings;
const { listenPort, targetPort, server: files, login } = settings;
const HOST = '127.0.0.1';
/** The socket limit equals the number of connections that clients keep open. */
const agent = new Agent({ keepAlive: true, maxSockets: 64 });
const expected = login === null ? null : Buffer.from(`${login.username}:${login.password}`).toString('base64');

function isAllowed({ headers }: IncomingMessage): boolean {
  if (expected === null) return true;
  const actual = Buffer.from((headers.authorization ?? '').replace(/^Basic /, ''));
  return actual.length === expected.length && timingSafeEqual(actual, Buffer.from(expected));
}

/** Forwards a request and streams the response. If the connection breaks on one side, the other side is closed. */
function relay(incoming: IncomingMessage, response: ServerResponse): void {
  const { method, url: path, headers } = incoming;
  const { authorization: _, ...rest } = headers;
  const forwarded = login === null ? headers : rest;
  const upstream = request({ host: HOST, port: targetPort, method, path, agent, headers: forwarded });
  upstream.once('response', (upstreamResponse) => {
    response.writeHead(upstreamResponse.statusCode ?? 502, upstreamResponse.headers);
    upstreamResponse.once('error', () => response.destroy());
    upstreamResponse.pipe(response);
  });
  upstream.once('error', () => {
    if (response.headersSent) response.destroy();
    else response.writeHead(502).end();
  });
  response.once('close', () => {
    if (!response.writableFinished) upstream.destroy();
  });
  incoming.pipe(upstream);
}

const server = createServer(
  { cert: readFileSync(files.certificate), key: readFileSync(files.key), keepAliveTimeout: 3_000 },
  (incoming, response) => {
    if (isAllowed(incoming)) return relay(incoming, response);
    incoming.resume();
    response.writeHead(401, { 'www-authenticate': 'Basic' }).end();
  },
);
server.listen(listenPort, HOST);
process.once('SIGTERM', () => process.exit(0));
