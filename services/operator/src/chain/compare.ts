import { type ActivityRow, type ChainStore, toActivityJson } from '@playline/chain';
import type { ActivityRecord } from '@playline/contracts';
import { ACTIVITIES } from '../import/subjects.ts';
import type { ChainRange } from './read-ranges.ts';

/** What a history lacks compared with its chain. */
export interface Comparison {
  activities: number;
  missing: number;
  different: number;
  /** The first findings, a sentence each. */
  readonly findings: string[];
}

/** More would hide the first ones. */
const FINDINGS_MAX = 100;
/** Ids in one query. */
const IDS_MAX = 500;

/** Everything that readers see of an activity, except the time of its update. */
export function toShownContent(row: ActivityRow): Record<string, unknown> {
  const { updated_at: _, ...content } = toActivityJson(row, { id: '', name: row.chain });
  return { ...content, chain: row.chain };
}

const textOf = (row: ActivityRow) => JSON.stringify(toShownContent(row));

function addFinding(compared: Comparison, { blockchainMetadata, type, id }: ActivityRow, what: string): void {
  if (compared.findings.length >= FINDINGS_MAX) return;
  const at = `block ${blockchainMetadata?.blockNumber}, log ${blockchainMetadata?.logIndex}`;
  compared.findings.push(`${type} ${id} (${at}) ${what}`);
}

/** Finds activities of a range that the history lacks, or has with other contents. @throws StoreFault */
export async function compareRange(
  store: Pick<ChainStore, 'readActivities' | 'readToken'>,
  { records, summarised, unindexed }: ChainRange,
  compared: Comparison,
): Promise<void> {
  for (let from = 0; from < records.length; from += IDS_MAX)
    await compareSome(store, records.slice(from, from + IDS_MAX), compared);
  for (const { block, log, contract, tokens, firstId, lastId } of summarised)
    if (compared.findings.length < FINDINGS_MAX)
      compared.findings.push(
        `block ${block}, log ${log}: ${tokens} tokens of ${contract} (ids ${firstId} to ${lastId}) are not in the ` +
          'history as single activities: over the limit of a contract and block',
      );
  for (const finding of findUnindexed(unindexed))
    if (compared.findings.length < FINDINGS_MAX) compared.findings.push(finding);
}

/** A finding per contract. */
function findUnindexed(logs: ChainRange['unindexed']): string[] {
  return [...Map.groupBy(logs, ({ address }) => address)].map(
    ([contract, own]) =>
      `block ${own[0]!.blockNumber}, log ${own[0]!.logIndex}: ${contract} emits Transfer without indexed parameters ` +
      `(${own.length} logs of this range): name it in legacyTokens of CHAIN_NODES, then run backfill`,
  );
}

async function compareSome(
  store: Pick<ChainStore, 'readActivities' | 'readToken'>,
  records: readonly ActivityRecord[],
  compared: Comparison,
): Promise<void> {
  const rows = records.map(ACTIVITIES.toRow);
  const standing = await ACTIVITIES.readStored(store, rows);
  for (const row of rows) {
    compared.activities++;
    const stored = standing.get(row.id);
    if (stored === undefined) {
      compared.missing++;
      addFinding(compared, row, 'is not in the history');
    } else if (textOf(stored) !== textOf(row)) {
      compared.different++;
      addFinding(compared, row, 'is not what the history says');
    }
  }
}
