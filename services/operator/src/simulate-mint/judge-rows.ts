import { isAccepted } from './book.ts';
import type { ShownMint } from './lists.ts';
import type { MintAttemptRow } from './mint-rows.ts';
import type { ShownMints } from './settle.ts';
import type { MintStage } from './stage.ts';

/** Compares the rows of `mint_requests` with the interface. @returns the number of attempts */
export async function judgeRows(stage: MintStage, shown: ShownMints): Promise<number> {
  const { book, rows, differences } = stage;
  const attempts = await rows.attempts();
  const byReference = Map.groupBy(attempts, ({ referenceId }) => referenceId);
  for (const entry of book.entries()) {
    const { referenceId } = entry.asset;
    const own = byReference.get(referenceId) ?? [];
    byReference.delete(referenceId);
    if (own.length < entry.attemptsMin || own.length > entry.attemptsMax)
      differences.add('row', `${referenceId} has ${own.length} attempts, and was accepted ${entry.attemptsMin} times`);
    const tokens = own.filter(({ status }) => status === 'succeeded').length;
    if (tokens > 1) differences.add('row', `${referenceId} has succeeded ${tokens} times`);
    if (own.slice(0, -1).some(({ status }) => status !== 'failed'))
      differences.add('row', `${referenceId} was accepted again before it had failed`);
    const [last, request] = [own.at(-1), shown.get(referenceId)];
    if (last === undefined || request === undefined) {
      if (isAccepted(entry) || own.length > 0) tellAbsent(stage, referenceId, { last, request });
      continue;
    }
    for (const text of describeRow(last, request)) differences.add('row', `${referenceId} ${text}`);
  }
  for (const [referenceId] of byReference)
    differences.add('uninvited', `${referenceId} has a row and was never accepted`);
  return attempts.length;
}

function tellAbsent(
  { differences }: MintStage,
  referenceId: string,
  { last, request }: { last: MintAttemptRow | undefined; request: ShownMint | undefined },
): void {
  if (last === undefined) differences.add('row', `${referenceId} has no row`);
  if (request === undefined && last !== undefined)
    differences.add('missing', `${referenceId} has a row and is not shown`);
}

function describeRow(row: MintAttemptRow, request: ShownMint): readonly string[] {
  const pairs = [
    ['contract', row.contract, request.collection_address],
    ['status', row.status, request.status],
    ['owner', row.owner, request.owner_address],
    ['token_id', row.tokenId, request.token_id],
    ['amount', row.amount, request.amount],
    ['transaction_hash', row.transactionHash, request.transaction_hash],
    ['activity_id', row.activityId, request.activity_id],
    ['error', row.error, request.error?.message ?? null],
  ] as const;
  return pairs.flatMap(([name, stored, told]) =>
    stored === told ? [] : [`${name} is stored as ${stored} and shown as ${told}`],
  );
}
