import { askClickHouse, type ClickHouseAccount } from '@playline/runtime';

/** Values of a statement's parameters, `{name: String}`; never part of its text. */
export type Parameters = Readonly<Record<string, string>>;

/** Sends one statement, and reads its answer as rows of text. @throws Error of the network, or with what ClickHouse answered */
export type Ask = (statement: string, parameters?: Parameters) => Promise<readonly (readonly string[])[]>;

/** Longer than any of these statements takes, also on a busy server. */
const STATEMENT_MAX_MS = 60_000;

/** @param account who asks; its database is the one that names without one are of */
export function createAsk(account: ClickHouseAccount): Ask {
  return async (statement, parameters = {}) => {
    const named = Object.entries(parameters).map(([name, value]) => [`param_${name}`, value]);
    const settings = { default_format: 'JSONCompactStringsEachRow', ...Object.fromEntries(named) };
    const response = await askClickHouse(account, { body: statement, settings, deadlineMs: STATEMENT_MAX_MS });
    const lines = (await response.text()).split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as string[]);
  };
}
