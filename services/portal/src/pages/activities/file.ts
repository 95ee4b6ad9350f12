import { CSV_LINES_MAX, CSV_TYPE, toEndedCsv, toIso } from '../../frame/csv.ts';
import type { Answer } from '../../frame/page.ts';
import { number } from '../../frame/parts.ts';
import { type ActivityLine, type ActivityQuestion, type PortalReads, readManyActivities } from '../../reads/index.ts';
import { type ContractWords, recordOf } from './show.ts';

const COLUMNS = [
  ...['changed', 'indexed', 'kind', 'chain', 'contract', 'collection', 'token ids', 'amounts', 'from', 'to'],
  ...['paid, smallest unit', 'paid with', 'transaction', 'block', 'activity id'],
];

function toCells(activity: ActivityLine, linked: ContractWords['linked']): readonly string[] {
  const { assets, payment, chain, contractAddress } = activity;
  return [
    ...[toIso(activity.updatedMs), toIso(activity.indexedMs), activity.type, chain, contractAddress],
    ...[recordOf(linked, activity)?.name ?? '', assets.map(({ tokenId }) => tokenId).join(' ')],
    ...[assets.map(({ amount }) => amount).join(' '), activity.from, activity.to, payment?.amount ?? ''],
    ...[payment === null ? '' : payment.contractAddress || payment.symbol, activity.transactionHash],
    ...[activity.blockNumber, activity.id],
  ];
}

export interface ActivitiesFileOptions {
  readonly environmentId: string;
  readonly question: ActivityQuestion;
  readonly linked: ContractWords['linked'];
  readonly signal: AbortSignal;
}

/** All that a page of activities would show, however many; amounts in the smallest unit, as the chain has them. */
export function toActivitiesFile(reads: Pick<PortalReads, 'activities'>, options: ActivitiesFileOptions): Answer {
  const { environmentId, question, linked, signal } = options;
  const lists = readManyActivities((each) => reads.activities(each, { signal }), question, CSV_LINES_MAX);
  const toEnd = () =>
    `This file ends here, at ${number(CSV_LINES_MAX, 'activities')}: choose a shorter span, or one collection. npm run replicate has all of a chain.`;
  const pieces = toEndedCsv(lists, { columns: COLUMNS, toCells: (each) => toCells(each, linked), toEnd });
  return { kind: 'long file', name: `activities-${environmentId}.csv`, type: CSV_TYPE, pieces };
}
