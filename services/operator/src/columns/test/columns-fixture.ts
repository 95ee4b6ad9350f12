import { type ChildProcess, spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { bareEnvironment, openOwnStores } from '@playline/testkit';
import { createAddresses } from '../../addresses.ts';
import { runCommand } from '../../app.ts';
import { createColumnsCommand } from '../../commands/columns.ts';
import { configSchema } from '../../config.ts';

export const NOW = Date.UTC(2026, 8, 1);
const OPERATOR = new URL('../../main.ts', import.meta.url).pathname;

export interface TestEvent {
  readonly environmentId: string;
  readonly name?: string;
  readonly day?: string;
  readonly properties: string;
}

export interface RunOptions {
  readonly stopAt?: RegExp;
  /** Answer to the confirmation prompt; without it, there is no terminal. */
  readonly answer?: string;
}

function createRun(environment: Readonly<Record<string, string>>) {
  return async (args: readonly string[], { stopAt, answer }: RunOptions = {}) => {
    const [results, progress]: [string[], string[]] = [[], []];
    const stop = new AbortController();
    const { clickhouse } = createAddresses(configSchema.parse(environment), '/nowhere');
    const command = createColumnsCommand({ clickhouse, wallClockMs: () => NOW, stop: stop.signal });
    const code = await runCommand([command], ['columns', ...args], {
      result: (line) => void results.push(line),
      progress: (line) => {
        progress.push(line);
        if (stopAt?.test(line)) stop.abort();
      },
      isInteractive: true,
      ...(answer === undefined ? {} : { prompt: async () => answer }),
    });
    return { code, results, progress: progress.join('\n') };
  };
}

export async function openColumnsFixture() {
  const own = await openOwnStores();
  const started = new Set<ChildProcess>();
  const run = createRun(own.environment);
  const add = (name: string, type: string, ...more: string[]) =>
    run(['add', '--name', name, '--path', name, '--type', type, ...more]);
  return {
    ...own,
    run,
    add,
    drop: (name: string) => run(['drop', '--name', name, '--yes']),
    list: async () =>
      (await run(['list', '--json'])).results.map((line) => JSON.parse(line) as Record<string, unknown>),
    start(...args: string[]) {
      const env = { ...bareEnvironment(), ...own.environment };
      const child = spawn(process.execPath, [OPERATOR, 'columns', ...args], { env, cwd: tmpdir(), stdio: 'ignore' });
      started.add(child);
      return child;
    },
    put: (events: readonly TestEvent[]) => own.query(toInsert(events)),
    async withoutMerges<T>(work: () => Promise<T>): Promise<T> {
      await own.query('SYSTEM STOP MERGES events');
      try {
        return await work();
      } finally {
        await own.query('SYSTEM START MERGES events');
      }
    },
    async close() {
      for (const child of started) child.kill('SIGKILL');
      await own.close();
    },
  };
}

export type ColumnsFixture = Awaited<ReturnType<typeof openColumnsFixture>>;

function toInsert(events: readonly TestEvent[]): string {
  const rows = events.map(({ environmentId, name = 'win', day = '2026-07-01', properties }) => {
    const text = properties.replaceAll('\\', '\\\\').replaceAll("'", "\\'");
    return `('${environmentId}', 'track', '${name}', '${day} 10:00:00', '${day} 10:00:01', generateUUIDv4(), '${text}', false)`;
  });
  return `INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, properties, test)
    VALUES ${rows.join(', ')}`;
}
