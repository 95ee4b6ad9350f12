import { toUuidText } from '@playline/contracts';
import { isVerified, type Verification, verifyReceipt } from '@playline/erasure';
import { EXIT, type ExitCode, printResult } from '../command.ts';
import { withPeople } from '../rebuild/with-stores.ts';
import { explainAbsence } from './show.ts';
import { type ErasureWork, toLine, toLinesOf, withRows } from './work.ts';

/** `erasures verify`: verifies that everything in a receipt is gone. */
export async function verify(work: ErasureWork): Promise<ExitCode> {
  const { context, records, json, terminal, erasureId } = work;
  const { wallClockMs } = context;
  // First, so that a missing receipt is reported even when Redis is down.
  if ((await records.readReceipt(erasureId)) === null) return explainAbsence(work);
  const verification = await withPeople(context, (people) =>
    withRows(context, (rows) => verifyReceipt({ records, rows, people, wallClockMs, checkDisk: true }, erasureId)),
  );
  if (verification === null) return explainAbsence(work);
  const isWhole = isVerified(verification);
  printResult(terminal, { json }, { ...toJson(verification), isVerified: isWhole }, toLines(verification, isWhole));
  return isWhole ? EXIT.ok : EXIT.failed;
}

function toLines(verification: Verification, isWhole: boolean): string[] {
  const { receipt, identities, remaining, onDisk } = verification;
  const width = Object.keys(remaining).reduce((most, { length }) => Math.max(most, length), 0);
  const inFiles = (store: string) => {
    const rows = onDisk?.[store];
    if (rows === undefined) return '';
    return `  in files ${rows}${rows > 0 && receipt.physicallyErasedAt === null ? ', removal pending' : ''}`;
  };
  return [
    toLine('erasure', `${toUuidText(receipt.erasureId)}  ${receipt.environmentId}`),
    toLine('identities', `${identities} of ${receipt.closureCount} searched`),
    toLine('hash', hashSentenceOf(verification)),
    ...toLinesOf(
      'left',
      Object.entries(remaining).map(([store, count]) => `${store.padEnd(width)}  ${count}${inFiles(store)}`),
    ),
    isWhole ? 'verified: nothing is left' : `NOT VERIFIED: ${reasonOf(verification)}`,
  ];
}

function hashSentenceOf({ hash, receipt, identities, laterErasures }: Verification): string {
  const later = laterErasures.map(toUuidText).join(', ');
  if (hash === 'matches') return 'matches: these are the keys that were erased';
  if (hash === 'differs') return 'DIFFERS: fences and request have other keys than those that were erased';
  const why =
    later === ''
      ? 'their fences belong to another erasure of the person, or are missing'
      : `their fences belong to a later erasure of the person: ${later}`;
  return `cannot be checked: ${receipt.closureCount - identities} keys are unknown; ${why}`;
}

function reasonOf({ hash, remaining, onDisk, receipt, laterErasures }: Verification): string {
  const isAny = (counts: Readonly<Record<string, number>>) => Object.values(counts).some((count) => count > 0);
  if (isAny(remaining)) return 'data from before the cut-off is left; npm run erasures -- scrub deletes it';
  if (receipt.physicallyErasedAt !== null && onDisk !== null && isAny(onDisk))
    return 'files have rows, although the receipt reports none; run npm run erasures -- remove';
  if (hash === 'differs') return 'the keys are not those of the receipt';
  const [later] = laterErasures;
  const next = later === undefined ? '' : `; verify ${toUuidText(later)}, which covers the rest`;
  return `not every key could be searched${next}`;
}

function toJson({ receipt, identities, hash, laterErasures, remaining, onDisk }: Verification): object {
  const { erasureId, environmentId, closureCount } = receipt;
  return {
    erasureId: toUuidText(erasureId),
    environmentId,
    identities,
    closureCount,
    hash,
    laterErasures: laterErasures.map(toUuidText),
    left: remaining,
    onDisk,
  };
}
