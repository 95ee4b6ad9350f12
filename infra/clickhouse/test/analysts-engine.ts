import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { ClickHouseAccount } from '@playline/stores';
import { createTables } from '@playline/testkit';
import { clickhouseSpec } from '../../local/clickhouse.ts';
import { keepRunning, type ProcessSpec } from '../../local/keeper.ts';
import { stackPathsOf } from '../../local/paths.ts';
import { freePorts } from '../../local/ports.ts';
import { loadSecrets } from '../../local/secrets.ts';
import { type Accounts, createAccounts } from './accounts.ts';

/**
 * A separate ClickHouse for one test, with production's accounts, and with the database that their grants and row
 * policies name.
 */
export interface AnalystsEngine extends Accounts {
  readonly url: string;
  /** All passwords in plain text. */
  readonly passwords: readonly string[];
  /** File with the passwords. */
  readonly secretsFile: string;
  readonly logFile: string;
  /** For clients that log in by themselves. */
  accountOf(user: string): ClickHouseAccount;
  /** Grants an account an environment, or revokes it. */
  grant(account: string, environmentId: string, isGranted?: boolean): Promise<void>;
  close(): Promise<void>;
}

/** @param nativePort port on which it also serves the native protocol */
export async function openAnalystsEngine({ nativePort }: { nativePort?: number } = {}): Promise<AnalystsEngine> {
  const parent = join(stackPathsOf().state, 'test');
  mkdirSync(parent, { recursive: true });
  const places = stackPathsOf(mkdtempSync(join(parent, 'analysts-')));
  const [port = 0] = await freePorts(1);
  const secrets = loadSecrets(places);
  const usual = clickhouseSpec(places, { port, secrets });
  const spec = nativePort === undefined ? usual : { ...usual, args: toNativeArgs(usual.args, nativePort) };
  const keeper = keepRunning(spec, { onPid: () => {}, onDeath: () => {}, onRecovery: () => {} });
  const close = async () => {
    await keeper.stop();
    rmSync(places.state, { recursive: true, force: true });
  };
  const url = `http://127.0.0.1:${port}`;
  const {
    operatorPassword,
    analystPassword,
    analystPasswords,
    viewsPassword,
    writerPassword,
    portalPassword,
    readerPassword,
  } = secrets;
  const passwordOf: Record<string, string> = {
    ...analystPasswords,
    operator: operatorPassword,
    analyst: analystPassword,
    views: viewsPassword,
    writer: writerPassword,
    portal: portalPassword,
    reader: readerPassword,
  };
  const { query: ask, runAsOperator: operate } = createAccounts(url, passwordOf);
  let version = Date.now();
  const grant = async (account: string, environmentId: string, isGranted = true) => {
    version += 1;
    await operate(
      `INSERT INTO analyst_grants VALUES ('${account}', '${environmentId}', ${!isGranted}, now64(3), ${version})`,
    );
  };
  try {
    await keeper.whenReady();
    await createTables({ url, user: 'operator', password: operatorPassword, database: 'playline' });
  } catch (fault) {
    await close();
    throw fault;
  }
  const passwords = Object.values(passwordOf);
  const files = { secretsFile: join(places.state, 'secrets.json'), logFile: spec.logFile };
  const accountOf = (user: string) => ({ url, user, password: passwordOf[user] ?? '', database: 'playline' });
  return { url, passwords, ...files, query: ask, runAsOperator: operate, accountOf, grant, close };
}

/** Its one statement opens the listeners of all ports that are set. */
function toNativeArgs(args: ProcessSpec['args'], port: number): readonly string[] {
  const given = typeof args === 'function' ? args() : args;
  const listening = given.map((arg) => (arg === 'SYSTEM START LISTEN HTTP' ? 'SYSTEM START LISTEN QUERIES ALL' : arg));
  return [...listening, '--tcp_port', String(port)];
}
