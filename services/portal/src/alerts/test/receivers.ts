import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

async function listen(server: Server): Promise<number> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  onTestFinished(() => new Promise<void>((done) => void server.close(() => done())));
  return (server.address() as AddressInfo).port;
}

export interface ReceivedWebhook {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** @param statusOf returns the status of each request; 0 closes the connection */
export async function openWebhookReceiver(
  statusOf: (request: number) => number = () => 204,
  tls?: { readonly cert: Buffer; readonly key: Buffer },
) {
  const received: ReceivedWebhook[] = [];
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    void textOf(request).then((body) => {
      received.push({ headers: request.headers, body });
      const status = statusOf(received.length);
      if (status === 0) request.socket.destroy();
      else response.writeHead(status, { location: '/elsewhere' }).end('x'.repeat(1_000));
    });
  };
  const server = tls === undefined ? createServer(handle) : createTlsServer(tls, handle);
  return { received, port: await listen(server) };
}

export interface ReceivedMail {
  readonly commands: readonly string[];
  readonly text: string;
}

/** An SMTP server without STARTTLS. @param refuses start of the command that it refuses with a response that quotes it */
export async function openMailReceiver({ refuses }: { refuses?: string } = {}) {
  const received: ReceivedMail[] = [];
  const sent: string[] = [];
  const refusesLine = (line: string) => {
    sent.push(line);
    return line === 'STARTTLS' || (refuses !== undefined && line.startsWith(refuses));
  };
  const port = await listen(createTcpServer((socket) => serveMail(socket, refusesLine, received)));
  return { received, sent, port };
}

function serveMail(socket: Socket, refuses: (line: string) => boolean, received: ReceivedMail[]): void {
  let [commands, text, isData] = [[] as string[], '', false];
  let rest = '';
  const answer = (line: string) => socket.write(`${line}\r\n`);
  const readLine = (line: string) => {
    if (isData && line !== '.') text += `${line}\n`;
    else if (isData) {
      received.push({ commands, text });
      [commands, text, isData] = [[], '', false];
      answer('250 stored');
    } else {
      commands.push(line);
      isData = line === 'DATA';
      if (refuses(line)) answer(`550 refused ${line}`);
      else answer(isData ? '354 continue' : line.startsWith('EHLO') ? '250 mail.test' : '250 done');
    }
  };
  socket.on('error', () => {});
  socket.on('data', (bytes) => {
    const lines = (rest + bytes.toString()).split('\r\n');
    rest = lines.pop() ?? '';
    lines.forEach(readLine);
  });
  answer('220 mail.test');
}
