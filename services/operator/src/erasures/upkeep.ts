/** `erasures scrub` and `erasures remove`. */
import { removeFromDisk, type Survivors, scrub as scrubRows } from '@playline/erasure';
import { EXIT, type ExitCode, printResult } from '../command.ts';
import { withPeople } from '../rebuild/with-stores.ts';
import { type ErasuresWork, toLine, withRows } from './work.ts';

/** Deletes rows, links and consents of all people who were erased. */
export async function scrub({ context, records, json, terminal }: ErasuresWork): Promise<ExitCode> {
  const { wallClockMs, stop: signal } = context;
  terminal.progress('searching for rows of people who were erased');
  const scrubbed = await withPeople(context, ({ guards }) =>
    withRows(context, (rows) =>
      scrubRows({
        rows,
        records,
        wallClockMs,
        signal,
        people: guards,
        onSurvivors: (survivors, pass) => {
          for (const each of survivors) terminal.progress(`pass ${pass} found ${toText(each)}: deleting`);
        },
      }),
    ),
  );
  const { fences, unfinished, found, swept } = scrubbed;
  const skipped = unfinished === 0 ? '' : `; ${unfinished} of running erasures skipped`;
  printResult(terminal, { json }, scrubbed, [
    toLine('searched', `${fences} fences${skipped}`),
    ...found.map((each) => toLine('FOUND', toText(each))),
    ...swept.map((each) => toLine('swept', toText(each))),
    found.length === 0 ? 'nothing is left' : 'nothing is left now; find out which service wrote it behind the fence',
  ]);
  return found.length === 0 ? EXIT.ok : EXIT.failed;
}

/** Removes deleted rows from the files, and marks the receipts. */
export async function remove({ context, records, json, terminal }: ErasuresWork): Promise<ExitCode> {
  const { wallClockMs, stop: signal } = context;
  terminal.progress('rewriting files with deleted rows; the old files are gone after about eight minutes');
  let lastFiles = 0;
  const removal = await withRows(context, (rows) =>
    removeFromDisk({
      rows,
      records,
      wallClockMs,
      signal,
      onReplaced: (files) => {
        if (files !== lastFiles) terminal.progress(`${files} replaced files remain`);
        lastFiles = files;
      },
    }),
  );
  const { fences, foundOnDisk, marked, deferred } = removal;
  const waiting = deferred === 0 ? '' : `, ${deferred} wait for the next removal: their people are being erased again`;
  const next = 'no receipt was marked: run npm run erasures -- scrub, then remove again';
  printResult(terminal, { json }, removal, [
    toLine('searched', `${fences} fences in files`),
    ...foundOnDisk.map((each) => toLine('IN FILES', toText(each))),
    toLine('receipts', `${marked} marked as physically erased${waiting}`),
    ...(foundOnDisk.length > 0 ? [next] : []),
  ]);
  return foundOnDisk.length === 0 ? EXIT.ok : EXIT.failed;
}

const IN_REDIS: Readonly<Record<string, string>> = { 'redis.i': 'linked identities', 'redis.c': 'consents' };

const toText = ({ table, column, as, environmentId, rows }: Survivors) =>
  table in IN_REDIS
    ? `${rows} ${IN_REDIS[table]} in Redis of ${environmentId}`
    : `${rows} rows in ${table} of ${environmentId} by ${column}${as === 'own' ? '' : ', carried by another identity'}`;
