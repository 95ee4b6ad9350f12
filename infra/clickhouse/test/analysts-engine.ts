import type { ClickHouseAccount } from '@playline/stores';
import { type Accounts, createAccounts } from './accounts.ts';
import { type NodesOptions, openNodes } from './open-nodes.ts';

export interface AnalystsEngine extends Accounts {
  readonly url: string;
  /** The accounts of each node, the home first. */
  readonly nodes: readonly Accounts[];
  /** Accounts in users.xml for analysts. */
  readonly pool: readonly { readonly account: string; readonly password: string }[];
  readonly passwords: readonly string[];
  readonly secretsFile: string;
  readonly logFile: string;
  accountOf(user: string): ClickHouseAccount;
  grant(account: string, environmentId: string, isGranted?: boolean): Promise<void>;
  close(): Promise<void>;
}

/** Opens one node, or the nodes of a cluster. Statements of the operator refer to the tables over all nodes. */
export async function openAnalystsEngine(options: NodesOptions = {}): Promise<AnalystsEngine> {
  const { urls, cluster, secrets, secretsFile, logFile, close } = await openNodes(options);
  const [url = ''] = urls;
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
  const nodes = urls.map((each) => createAccounts(each, passwordOf));
  const { query } = nodes[0]!;
  const runAsOperator = async (sql: string) => {
    const { ok, text } = await query(
      'operator',
      sql,
      cluster === undefined ? {} : { search: '&database=playline_all' },
    );
    if (!ok) throw new Error(text);
    return text;
  };
  let version = Date.now();
  const grant = async (account: string, environmentId: string, isGranted = true) => {
    version += 1;
    await runAsOperator(
      `INSERT INTO analyst_grants VALUES ('${account}', '${environmentId}', ${!isGranted}, now64(3), ${version})`,
    );
  };
  const nodesOfAccount = cluster === undefined ? {} : { cluster: { name: cluster, urls } };
  const accountOf = (user: string) => {
    return { url, user, password: passwordOf[user] ?? '', database: 'playline', ...nodesOfAccount };
  };
  const pool = Object.entries(secrets.analystPasswords).map(([account, password]) => ({ account, password }));
  const passwords = [...Object.values(passwordOf), secrets.clusterSecret];
  return { url, nodes, pool, passwords, secretsFile, logFile, query, runAsOperator, accountOf, grant, close };
}
