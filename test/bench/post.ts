import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Bench } from './figure.ts';
import type { Server } from './gateway-servers.ts';
import type { Posted, Posting } from './post-process.ts';

/**
 * Posts new messages from a separate process until every batch is answered.
 * @throws Error when the process fails or an answer was not 200
 */
export function postMessages(
  server: Server,
  bench: Bench,
  shape: Pick<Posting, 'messages' | 'batchSize' | 'messagesPerSecond'>,
): Promise<Posted> {
  const file = fileURLToPath(new URL('./post-process.ts', import.meta.url));
  const posting: Posting = {
    port: server.port,
    path: '/v1/audience/messages',
    headers: { 'x-service-publishable-key': bench.accessKey },
    ...shape,
  };
  const child = fork(file, [JSON.stringify(posting)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  let posted: Posted | null = null;
  child.on('message', (message: Posted) => {
    posted = message;
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => {
      if (posted === null || code !== 0) return reject(new Error(`posting ended with ${code}`));
      resolve(posted);
    });
  });
}
