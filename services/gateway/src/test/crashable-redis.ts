import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '@playline/infra/ports';
import { until } from '@playline/testkit';
import { Redis } from 'ioredis';

/** A Redis for one test that can lose the end of its append-only file in a crash. */
export interface CrashableRedis {
  readonly url: string;
  readonly client: Redis;
  /** Copies all data written so far, which the next crash restores. */
  saveState(): void;
  /** Kills Redis, discards all writes since the last `saveState`, and restarts Redis. */
  crash(): Promise<void>;
  close(): Promise<void>;
}

export async function openCrashableRedis(): Promise<CrashableRedis> {
  const [port] = await freePorts(1);
  const folder = mkdtempSync(join(tmpdir(), 'test-redis-'));
  const [data, copy] = [join(folder, 'appendonlydir'), join(folder, 'saved-state')];
  const options = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', ''];
  // With `always`, the file contains every acknowledged command when it is copied.
  const durable = ['--appendonly', 'yes', '--appendfsync', 'always', '--aof-load-truncated', 'yes'];
  const client = new Redis(`redis://127.0.0.1:${port}`, { retryStrategy: () => 25 });
  client.on('error', () => {});
  let child: ChildProcess;
  const start = async () => {
    child = spawn('redis-server', [...options, ...durable], { stdio: 'ignore' });
    await until('Redis responds', async () => client.status === 'ready' && (await client.ping()) === 'PONG');
  };
  const kill = async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
    await until('the connection is closed', () => client.status !== 'ready');
  };
  await start();
  return {
    url: `redis://127.0.0.1:${port}`,
    client,
    saveState: () => {
      rmSync(copy, { recursive: true, force: true });
      cpSync(data, copy, { recursive: true });
    },
    crash: async () => {
      await kill();
      rmSync(data, { recursive: true });
      cpSync(copy, data, { recursive: true });
      await start();
    },
    close: async () => {
      await kill();
      client.disconnect();
      rmSync(folder, { recursive: true });
    },
  };
}
