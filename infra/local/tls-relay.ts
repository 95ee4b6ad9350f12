// A process that adds TLS, and optionally a login, to an HTTP store of the stack that supports neither here: ClickHouse
// (clickhouse-local) and the registry. The argument is a file with the settings.
import { timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { RelaySettings } from './tls-relays.ts';

const settings = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as RelaySettings;
const { listenPort, targetPort, server: files, login } = settings;
const HOST = '127.0.0.1';
/** As many as clients keep open. */
const agent = new Agent({ keepAlive: true, maxSockets: 64 });
const expected = login === null ? null : Buffer.from(`${login.username}:${login.password}`).toString('base64');

function isAllowed({ headers }: IncomingMessage): boolean {
  if (expected === null) return true;
  const given = Buffer.from((headers.authorization ?? '').replace(/^Basic /, ''));
  return given.length === expected.length && timingSafeEqual(given, Buffer.from(expected));
}

/** Forwards a request and streams the response. A connection that breaks on one side is broken on the other. */
function relay(incoming: IncomingMessage, answer: ServerResponse): void {
  const { method, url: path, headers } = incoming;
  const { authorization: _, ...others } = headers;
  const forwarded = login === null ? headers : others;
  const passed = request({ host: HOST, port: targetPort, method, path, agent, headers: forwarded });
  passed.once('response', (given) => {
    answer.writeHead(given.statusCode ?? 502, given.headers);
    given.once('error', () => answer.destroy());
    given.pipe(answer);
  });
  passed.once('error', () => {
    if (answer.headersSent) answer.destroy();
    else answer.writeHead(502).end();
  });
  answer.once('close', () => {
    if (!answer.writableFinished) passed.destroy();
  });
  incoming.pipe(passed);
}

const server = createServer(
  { cert: readFileSync(files.certificate), key: readFileSync(files.key), keepAliveTimeout: 3_000 },
  (incoming, answer) => {
    if (isAllowed(incoming)) return relay(incoming, answer);
    incoming.resume();
    answer.writeHead(401, { 'www-authenticate': 'Basic' }).end();
  },
);
server.listen(listenPort, HOST);
process.once('SIGTERM', () => process.exit(0));
