/** Posts requests from a separate thread, so that only the gateway's work is measured. */
import { parentPort } from 'node:worker_threads';
import { type LoadClient, openLoadClient } from '../../bench/load-client.ts';

let client: LoadClient | null = null;

parentPort?.on('message', async ({ port, request, times }: { port: number; request: Uint8Array; times: number }) => {
  client ??= await openLoadClient(port);
  const bytes = Buffer.from(request);
  let status = 0;
  for (let n = 0; n < times; n++) status = await client.send(bytes);
  parentPort?.postMessage(status);
});
