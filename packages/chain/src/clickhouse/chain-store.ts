import { type ClickHouse, type ClickHouseTarget, openClickHouse } from '@playline/stores/clickhouse';
import { createReadPage } from '../page.ts';
import type { ActivityRow, TokenRow } from '../rows.ts';
import type { ChainStore } from '../store.ts';
import { createReadEntries } from './feed-entries.ts';
import { toTimesCondition, toUuidLiteral } from './literals.ts';
import { openQuestions } from './questions.ts';
import { ACTIVITY_COLUMNS, LOGGED_COLUMNS, type StoredActivity, toActivity, toAddress } from './read-columns.ts';

/** A page reads a few thousand rows. If it takes longer than this, the server does not answer. */
const LIMITS = { executionMaxS: 10, connectionsMax: 32 };

/** Opens the reader; connects with the first call. Its account needs to read, and to set limits of a query. */
export function openChainStore(target: ClickHouseTarget): ChainStore {
  const connection = openClickHouse(target, LIMITS);
  const questions = openQuestions(target, LIMITS);
  return {
    readPage: createReadPage({ entries: createReadEntries(questions) }),
    readActivities: createReadActivities(connection),
    async readToken(chain, contractAddress) {
      const [row] = await connection.read<TokenRow>(
        `SELECT ${TOKEN_COLUMNS} FROM tokens WHERE chain = {chain: String} ` +
          'AND contract = toFixedString(unhex({contract: String}), 20) ORDER BY updated_at DESC LIMIT 1',
        { chain, contract: contractAddress.slice(2) },
      );
      return row ?? null;
    },
    ready: connection.ready,
    async close() {
      questions.close();
      await connection.close();
    },
  };
}

function createReadActivities(connection: ClickHouse): ChainStore['readActivities'] {
  return async (ids) => {
    if (ids.length === 0) return [];
    const latest = await connection.read<{ chain: string; uuid: string; us: number }>(
      'SELECT chain, toString(id) AS uuid, toUnixTimestamp64Micro(max(updated_at)) AS us FROM activity_ids ' +
        `WHERE id IN (${ids.map(toUuidLiteral).join(', ')}) GROUP BY chain, id`,
    );
    const found: ActivityRow[] = [];
    for (const [chain, versions] of Map.groupBy(latest, (version) => version.chain)) {
      const wanted = new Map(versions.map(({ uuid, us }) => [uuid, us]));
      const rows = await connection.read<StoredActivity>(
        `SELECT ${ACTIVITY_COLUMNS} FROM activities WHERE chain = {chain: String} AND ${toTimesCondition(
          versions.map(({ us }) => us),
        )}`,
        { chain },
        { optimize_use_projections: 0, max_threads: 1 },
      );
      // There may be several copies of one version until they are folded.
      const read = rows.map(toActivity).filter(({ id, updatedAt }) => wanted.get(id) === updatedAt);
      for (const each of new Map(read.map((row) => [row.id, row])).values()) found.push(each);
    }
    return found;
  };
}

const TOKEN_COLUMNS =
  `chain, ${toAddress('contract')} AS contractAddress, ${toAddress('root_contract')} AS rootContractAddress, ` +
  'symbol, decimals, image_url AS imageUrl, name, verification_status AS verificationStatus, ' +
  `is_canonical AS isCanonical, root_chain_id AS rootChainId, bridge_used AS bridgeUsed, ${LOGGED_COLUMNS}`;
