import { toUuidText } from '@playline/contracts';
import { isVerified, type Verification, verifyReceipt } from '@playline/erasure';
import { EXIT, type ExitCode } from '../command.ts';
import { withPeople } from '../rebuild/with-stores.ts';
import { explainAbsence } from './show.ts';
import { type ErasureWork, withRows } from './stores.ts';
import { toLine, toLinesOf } from './times.ts';

/** `erasures verify`: checks now that everything in a receipt is gone. */
export async function verify(work: ErasureWork): Promise<ExitCode> {
  const { context, records, isJson, terminal, erasureId } = work;
  const { wallClockMs } = context;
  // Checked first, so that a missing receipt is reported even when Redis is away.
  if ((await records.readReceipt(erasureId)) === null) return explainAbsence(work);
  const verification = await withPeople(context, (people) =>
    withRows(context, (rows) => verifyReceipt({ records, rows, people, wallClockMs, checkDisk: true }, erasureId)),
  );
  if (verification === null) return explainAbsence(work);
  const isWhole = isVerified(verification);
  if (isJson) terminal.result(JSON.stringify({ ...toJson(verification), isVerified: isWhole }));
  else for (const line of toLines(verification, isWhole)) terminal.result(line);
  return isWhole ? EXIT.ok : EXIT.failed;
}

function toLines(verification: Verification, isWhole: boolean): string[] {
  const { receipt, identities, remaining: left, onDisk } = verification;
  const width = Object.keys(left)
    .map((place) => place.length)
    .reduce((most, each) => Math.max(most, each), Number.NEGATIVE_INFINITY);
  const inFiles = (place: string) => {
    const rows = onDisk?.[place];
    if (rows === undefined) return '';
    return `  in files ${rows}${rows > 0 && receipt.physicallyErasedAt === null ? ', still to be removed' : ''}`;
  };
  return [
    toLine('erasure', `${toUuidText(receipt.erasureId)}  ${receipt.environmentId}`),
    toLine('identities', `${identities} of ${receipt.closureCount} looked for`),
    toLine('hash', hashSentenceOf(verification)),
    ...toLinesOf(
      'left',
      Object.entries(left).map(([place, count]) => `${place.padEnd(width)}  ${count}${inFiles(place)}`),
    ),
    isWhole ? 'verified: nothing is left' : `NOT VERIFIED: ${reasonOf(verification)}`,
  ];
}

function hashSentenceOf({ hash, receipt, identities, laterErasures }: Verification): string {
  const later = laterErasures.map(toUuidText).join(', ');
  if (hash === 'matches') return 'matches: these are the keys that were erased';
  if (hash === 'differs') return 'DIFFERS: fences and request name other keys than those that were erased';
  const why =
    later === ''
      ? 'their fences stand under another erasure of the same person, or are missing'
      : `their fences stand under a later erasure of the same person, and a fence bears the id of the last: ${later}`;
  return `cannot be checked: ${receipt.closureCount - identities} keys are not known any more; ${why}`;
}

function reasonOf({ hash, remaining: left, onDisk, receipt, laterErasures }: Verification): string {
  const isAny = (counts: Readonly<Record<string, number>>) => Object.values(counts).some((count) => count > 0);
  if (isAny(left))
    return 'something is left that is not later than the cut-off; npm run erasures -- scrub deletes them';
  if (receipt.physicallyErasedAt !== null && onDisk !== null && isAny(onDisk))
    return 'rows stand in files, and the receipt says that none does; npm run erasures -- remove';
  if (hash === 'differs') return 'the keys are not those of the receipt';
  const [later] = laterErasures;
  const look = later === undefined ? '' : `; the rest is covered by ${toUuidText(later)}: verify that one`;
  return `not everybody could be looked for${look}`;
}

function toJson({ receipt, identities, hash, laterErasures, remaining: left, onDisk }: Verification): object {
  const { erasureId, environmentId, closureCount } = receipt;
  return {
    erasureId: toUuidText(erasureId),
    environmentId,
    identities,
    closureCount,
    hash,
    laterErasures: laterErasures.map(toUuidText),
    left,
    onDisk,
  };
}
