import { CSV_LINES_MAX, CSV_TYPE, toEndedCsv, toIso } from '../../frame/csv.ts';
import type { Answer } from '../../frame/page.ts';
import { number } from '../../frame/parts.ts';
import { type MintLine, type MintQuestion, type PortalReads, readManyMints } from '../../reads/index.ts';

const COLUMNS = [
  ...['requested', 'changed', 'reference id', 'chain', 'collection', 'token', 'amount', 'owner', 'signer', 'status'],
  ...['stage', 'reason', 'error', 'transaction', 'trace id'],
];

const toCells = (mint: MintLine): readonly string[] => [
  ...[toIso(mint.requestedMs), toIso(mint.changedMs), mint.referenceId, mint.chain, mint.contractAddress],
  ...[mint.tokenId ?? '', mint.amount ?? '', mint.ownerAddress, mint.signerAddress, mint.status, mint.stage],
  ...[mint.reason ?? '', mint.error ?? '', mint.transactionHash ?? '', mint.traceId],
];

export interface MintsFileOptions {
  readonly question: MintQuestion;
  readonly signal: AbortSignal;
}

/** All that a page of mints would show, however many. */
export function toMintsFile(reads: Pick<PortalReads, 'mints'>, { question, signal }: MintsFileOptions): Answer {
  const lists = readManyMints((each) => reads.mints(each, { signal }), question, CSV_LINES_MAX);
  const toEnd = () => `This file ends here, at ${number(CSV_LINES_MAX, 'mints')}: npm run mints -- list has all.`;
  const pieces = toEndedCsv(lists, { columns: COLUMNS, toCells, toEnd });
  return { kind: 'long file', name: `mints-${question.environmentId}.csv`, type: CSV_TYPE, pieces };
}
