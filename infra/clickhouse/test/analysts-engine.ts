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

export interface AnalystsEngine extends Accounts {
  readonly url: string;
  /** Accounts in users.xml for analysts. */
  readonly pool: readonly { readonly account: string; readonly password: string }[];
  readonly passwords: readonly string[];
  readonly secretsFile: string;
  readonly logFile: string;
  accountOf(user: string): ClickHouseAccount;
  grant(account: string, environmentId: string, isGranted?: boolean): Promise<void>;
  close(): Promise<void>;
}

export async function openAnalystsEngine({ nativePort }: { nativePort?: number } = {}): Promise<AnalystsEngine> {
  const parent = join(stackPathsOf().state, 'test');
  mkdirSync(parent, { recursive: true });
  const paths = stackPathsOf(mkdtempSync(join(parent, 'analysts-')));
  const [port = 0] = await freePorts(1);
  const secrets = loadSecrets(paths);
  const base = clickhouseSpec(paths, { port, secrets });
  const spec = nativePort === undefined ? base : { ...base, args: toNativeArgs(base.args, nativePort) };
  const keeper = keepRunning(spec, { onPid: () => {}, onExit: () => {}, onRecovery: () => {} });
  const close = async () => {
    await keeper.stop();
    rmSync(paths.state, { recursive: true, force: true });
  };
  const url = `http://127.0.0.1:${port}`;
  const passwordOf: Record<string, string> = {
    ...secrets.analystPasswords,
    operator: secrets.operatorPassword,
    analyst: secrets.analystPassword,
    views: secrets.viewsPassword,
    writer: secrets.writerPassword,
    portal: secrets.portalPassword,
    accounts: secrets.accountsPassword,
    reader: secrets.readerPassword,
  };
  const accounts = createAccounts(url, passwordOf);
  let version = Date.now();
  const grant = async (account: string, environmentId: string, isGranted = true) => {
    version += 1;
    await accounts.runAsOperator(
      `INSERT INTO analyst_grants VALUES ('${account}', '${environmentId}', ${!isGranted}, now64(3), ${version})`,
    );
  };
  try {
    await keeper.whenReady();
    await createTables({ url, user: 'operator', password: secrets.operatorPassword, database: 'playline' });
  } catch (error) {
    await close();
    throw error;
  }
  const passwords = Object.values(passwordOf);
  const files = { secretsFile: join(paths.state, 'secrets.json'), logFile: spec.logFile };
  const accountOf = (user: string) => ({ url, user, password: passwordOf[user] ?? '', database: 'playline' });
  const pool = Object.entries(secrets.analystPasswords).map(([account, password]) => ({ account, password }));
  return { url, pool, passwords, ...files, ...accounts, accountOf, grant, close };
}

/** Changes the start statement so that it opens the listeners of all configured ports. */
function toNativeArgs(args: ProcessSpec['args'], port: number): readonly string[] {
  const original = typeof args === 'function' ? args() : args;
  const changed = original.map((arg) => (arg === 'SYSTEM START LISTEN HTTP' ? 'SYSTEM START LISTEN QUERIES ALL' : arg));
  return [...changed, '--tcp_port', String(port)];
}
