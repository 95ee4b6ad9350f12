/**
 * Closes the tables to readers during a restore. Every row that the portal and analysts read passes a row policy that
 * queries the view `readable_environments`; while a restore runs, a view that refuses them has this name. In a cluster,
 * each node has the view, and the home, whose view contains the state of the restore, is changed last.
 */
import { type ClickHouseAccount, onEachNode, quoteText } from '@playline/stores';
import { createSqlClient, type SqlClient } from '../columns/tables.ts';

const VIEW = 'readable_environments';
/** The view of the schema while the gate is closed. */
const ORIGINAL = 'readable_environments_of_accounts';
const COMMENT = /^Reads are refused until the restore of backup (\S+) by (\S+) is complete \((loading|loaded)\)$/;

export interface GateState {
  readonly backup: string;
  /** The run that closed the gate, or last took it over. */
  readonly run: string;
  /** `loaded` once the tables are complete and only erasures are missing. */
  readonly phase: 'loading' | 'loaded';
}

const toComment = ({ backup, run, phase }: GateState) =>
  `Reads are refused until the restore of backup ${backup} by ${run} is complete (${phase})`;

/** Returns the state of the restore that closed the gate, or null if the gate is open. */
export async function readGate(client: SqlClient): Promise<GateState | null> {
  const [, backup, run, phase] = COMMENT.exec((await readViews(client)).get(VIEW) ?? '') ?? [];
  if (backup === undefined || run === undefined) return null;
  return { backup, run, phase: phase === 'loaded' ? 'loaded' : 'loading' };
}

async function readViews(client: SqlClient): Promise<Map<string, string>> {
  const rows = await client.read(`SELECT name, comment FROM system.tables
    WHERE database = currentDatabase() AND name IN ('${VIEW}', '${ORIGINAL}')`);
  return new Map(rows.map(([name, comment]) => [String(name), String(comment)]));
}

/**
 * The accounts that restore and erase, and the dictionary, which no account can read while the gate is closed. See
 * `readable_environments` for the two functions.
 */
const MAY_READ = `if(authenticatedUser() = '', currentUser(), authenticatedUser()) IN ('operator', 'writer')
  OR (authenticatedUser() = '' AND currentUser() = 'views')`;

const homeLast = (account: ClickHouseAccount): SqlClient[] => onEachNode(account).map(createSqlClient).toReversed();

/** Closes the gate, or changes the state of a closed gate. Can be interrupted at any step and repeated. */
export async function closeGate(account: ClickHouseAccount, state: GateState): Promise<void> {
  for (const client of homeLast(account)) await closeNode(client, state);
}

async function closeNode(client: SqlClient, state: GateState): Promise<void> {
  const comment = quoteText(toComment(state));
  if ((await readGate(client)) !== null) return await client.run(`ALTER TABLE ${VIEW} MODIFY COMMENT ${comment}`);
  const views = await readViews(client);
  // Left by an opening that was interrupted after the exchange.
  if (views.has(VIEW) && views.has(ORIGINAL)) await client.run(`DROP VIEW ${ORIGINAL}`);
  // Without the view, every read through a row policy fails.
  if (views.has(VIEW)) await client.run(`RENAME TABLE ${VIEW} TO ${ORIGINAL}`);
  const refusal = quoteText('Playline is being restored. Reads are refused until all erasures are applied.');
  await client.run(`CREATE VIEW ${VIEW} (environment_id String COMMENT 'Environment; * for all environments')
    SQL SECURITY INVOKER AS SELECT if(throwIf(NOT (${MAY_READ}), ${refusal}) = 0, '*', '') AS environment_id
    COMMENT ${comment}`);
}

export async function openGate(account: ClickHouseAccount): Promise<void> {
  for (const client of homeLast(account)) await openNode(client);
}

async function openNode(client: SqlClient): Promise<void> {
  if ((await readGate(client)) === null) return;
  await client.run(`EXCHANGE TABLES ${VIEW} AND ${ORIGINAL}`);
  await client.run(`DROP VIEW ${ORIGINAL}`);
}
