import { type ActivityRow, type ChainStore, toActivityJson } from '@playline/chain';
import type { ActivityRecord } from '@playline/contracts';
import { ACTIVITIES } from '../import/subjects.ts';
import type { ChainRange } from './read-ranges.ts';

export interface Comparison {
  activities: number;
  missing: number;
  different: number;
  /** The first findings, one sentence each. */
  readonly findings: string[];
}

const FINDINGS_MAX = 100;
/** Ids in one query. */
const IDS_MAX = 500;

/** What readers see of an activity, except the time of its update. */
export function toShownContent(row: ActivityRow): Record<string, unknown> {
  const { updated_at: _, ...content } = toActivityJson(row, { id: '', name: row.chain });
  return { ...content, chain: row.chain };
}

const textOf = (row: ActivityRow) => JSON.stringify(toShownContent(row));

function addFinding(compared: Comparison, finding: string): void {
  if (compared.findings.length < FINDINGS_MAX) compared.findings.push(finding);
}

/** Finds activities that the history lacks, or has with other contents. @throws StoreFault */
export async function compareRange(
  store: Pick<ChainStore, 'readActivities' | 'readToken'>,
  { records, summarised, unindexed }: ChainRange,
  compared: Comparison,
): Promise<void> {
  for (let from = 0; from < records.length; from += IDS_MAX)
    await compareSome(store, records.slice(from, from + IDS_MAX), compared);
  for (const { block, log, contract, tokens, firstId, lastId } of summarised)
    addFinding(
      compared,
      `block ${block}, log ${log}: ${tokens} tokens of ${contract} (ids ${firstId} to ${lastId}) are not in the history ` +
        'as single activities: over the limit of a contract and block',
    );
  for (const [contract, own] of Map.groupBy(unindexed, ({ address }) => address))
    addFinding(
      compared,
      `block ${own[0]!.blockNumber}, log ${own[0]!.logIndex}: ${contract} emits Transfer without indexed parameters ` +
        `(${own.length} logs of this range): add it to legacyTokens of CHAIN_NODES, then run backfill`,
    );
}

async function compareSome(
  store: Pick<ChainStore, 'readActivities' | 'readToken'>,
  records: readonly ActivityRecord[],
  compared: Comparison,
): Promise<void> {
  const rows = records.map(ACTIVITIES.toRow);
  const stored = await ACTIVITIES.readStored(store, rows);
  for (const row of rows) {
    compared.activities++;
    const { blockchainMetadata, type, id } = row;
    const name = `${type} ${id} (block ${blockchainMetadata?.blockNumber}, log ${blockchainMetadata?.logIndex})`;
    const own = stored.get(id);
    if (own === undefined) {
      compared.missing++;
      addFinding(compared, `${name} is not in the history`);
    } else if (textOf(own) !== textOf(row)) {
      compared.different++;
      addFinding(compared, `${name} differs from the history`);
    }
  }
}
