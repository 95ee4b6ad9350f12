import { type ClickHouseAccount, sendStatement } from '@playline/stores';

/** Values of a statement's parameters: `{name: String}`. */
export type Parameters = Readonly<Record<string, string>>;

/** Returns the rows of one statement as text. @throws Error of the network, or of ClickHouse */
export type RunStatement = (statement: string, parameters?: Parameters) => Promise<readonly (readonly string[])[]>;

const STATEMENT_MAX_MS = 60_000;

/** The account's database is the default for table names. */
export function createRunStatement(account: ClickHouseAccount): RunStatement {
  return async (statement, parameters = {}) => {
    const named = Object.entries(parameters).map(([name, value]) => [`param_${name}`, value]);
    const settings = { default_format: 'JSONCompactStringsEachRow', ...Object.fromEntries(named) };
    const response = await sendStatement(account, { body: statement, settings, deadlineMs: STATEMENT_MAX_MS });
    const lines = (await response.text()).split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as string[]);
  };
}
