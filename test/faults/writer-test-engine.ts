import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePorts } from '@playline/infra/ports';
import { clickhouseSpec } from '../../infra/local/clickhouse.ts';
import { type Keeper, keepRunning } from '../../infra/local/keeper.ts';
import { stackPathsOf } from '../../infra/local/paths.ts';
import { loadSecrets } from '../../infra/local/secrets.ts';

export type TestEngine = Awaited<ReturnType<typeof startTestEngine>>;

export interface EngineOptions {
  /** The server's memory limit; default: the production limit. */
  readonly memoryMaxBytes?: number;
  /** Prepares the data folder, for example by mounting a small disk. @returns a function that undoes the preparation */
  readonly prepareData?: (folder: string) => () => void;
}

/** Starts a separate ClickHouse server, with the production accounts, that a test may stop, overload and fill. */
export async function startTestEngine({ memoryMaxBytes, prepareData }: EngineOptions = {}) {
  const parent = join(stackPathsOf().state, 'test');
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, 'engine-'));
  const paths = stackPathsOf(folder);
  const [port = 0] = await freePorts(1);
  const secrets = loadSecrets(paths);
  const specOf = (operatorPassword = secrets.operatorPassword) =>
    clickhouseSpec(paths, { port, secrets: { ...secrets, operatorPassword } });
  const spec = specOf();
  const dataFolder = join(spec.folder, 'data');
  mkdirSync(dataFolder, { recursive: true });
  const undo = prepareData?.(dataFolder);
  let keeper: Keeper | null = null;
  /** Starts ClickHouse. @param operatorPassword the new password, to simulate a rotation */
  const start = async (operatorPassword?: string) => {
    const started = specOf(operatorPassword);
    if (memoryMaxBytes !== undefined) limitMemory(join(folder, 'etc', 'clickhouse', 'config.xml'), memoryMaxBytes);
    keeper = keepRunning(started, { onPid: () => {}, onExit: () => {}, onRecovery: () => {} });
    await keeper.whenReady();
  };
  /** Sends SIGTERM and waits until ClickHouse has exited. */
  const stop = async () => void (await keeper?.stop());
  const close = async () => {
    await stop();
    undo?.();
    rmSync(folder, { recursive: true, force: true });
  };
  await start().catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return {
    address: { url: `http://127.0.0.1:${port}`, user: 'operator', password: secrets.operatorPassword },
    analysts: Object.entries(secrets.analystPasswords).map(([user, password]) => ({ user, password })),
    dataFolder,
    start,
    stop,
    close,
  };
}

function limitMemory(file: string, bytes: number): void {
  const text = readFileSync(file, 'utf8');
  const limited = text.replace(/(?<=<max_server_memory_usage>)\d+/, String(bytes));
  if (limited === text) throw new Error(`${file} has no memory limit`);
  writeFileSync(file, limited);
}
