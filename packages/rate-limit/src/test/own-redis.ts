import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { freePorts } from '@playline/infra/ports';
import { until } from '@playline/testkit';
import { Redis } from 'ioredis';

/** A Redis that belongs to one test, which can take it away and bring it back. */
export interface OwnRedis {
  readonly url: string;
  /** `stopped`: the process ends and its data is lost. `frozen`: the process stays but does not answer. */
  disconnect(how: 'stopped' | 'frozen'): Promise<void>;
  reconnect(): Promise<void>;
  close(): Promise<void>;
}

export async function openOwnRedis(): Promise<OwnRedis> {
  const [port] = await freePorts(1);
  const url = `redis://127.0.0.1:${port}`;
  let child: ChildProcess;
  const start = async () => {
    const options = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
    child = spawn('redis-server', options, { stdio: 'ignore' });
    await until('Redis answers', () => answers(url));
  };
  const end = async () => {
    if (child.exitCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  await start();
  let left: 'stopped' | 'frozen' | null = null;
  return {
    url,
    disconnect: async (how) => {
      left = how;
      if (how === 'frozen') child.kill('SIGSTOP');
      else await end();
    },
    reconnect: async () => {
      if (left === 'frozen') child.kill('SIGCONT');
      else await start();
    },
    close: end,
  };
}

async function answers(url: string): Promise<boolean> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  redis.on('error', () => {});
  try {
    await redis.connect();
    return (await redis.ping()) === 'PONG';
  } finally {
    redis.disconnect();
  }
}
