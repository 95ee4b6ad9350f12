import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Bench } from './figure.ts';
import { type Server, startPeer } from './services.ts';

export async function startBareServer(bench: Bench, answer: Buffer): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'playline-bench-page-'));
  const file = join(folder, 'answer');
  writeFileSync(file, answer);
  // The server reads the file when it starts.
  return startPeer(bench, 'reference/http-server', { environment: { ANSWER_FILE: file } }).finally(() =>
    rmSync(folder, { recursive: true }),
  );
}
