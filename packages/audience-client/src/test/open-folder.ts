import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { Message } from '../index.ts';

const TYPES: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.map': 'application/json' };

/** A web server that serves a folder and accepts messages like the gateway. */
export interface FolderSite {
  readonly url: string;
  readonly messages: Message[];
  close(): Promise<void>;
}

/** @param pages HTML by path; any other path is served from the folder */
export async function openFolder(folder: string, pages: Record<string, string>): Promise<FolderSite> {
  const messages: Message[] = [];
  const server = createServer(async (request, response) => {
    const path = request.url?.replace(/\?.*/, '') ?? '';
    if (request.method === 'POST') {
      const batch = await readBatch(request);
      messages.push(...batch);
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ success: true, accepted: batch.length, rejected: 0, rejections: [] }));
      return;
    }
    const page = pages[path];
    response.setHeader('content-type', page === undefined ? (TYPES[extname(path)] ?? 'text/plain') : 'text/html');
    try {
      response.end(page ?? readFileSync(join(folder, path)));
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    messages,
    close: () =>
      new Promise((done) => {
        server.closeAllConnections();
        server.close(() => done());
      }),
  };
}

async function readBatch(request: IncomingMessage): Promise<Message[]> {
  const body = Buffer.concat(await request.toArray());
  const text = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
  return JSON.parse(text.toString()).messages;
}
