import { removeFromDisk, type Survivors, scrub as scrubRows } from '@playline/erasure';
import { EXIT, type ExitCode } from '../command.ts';
import { withPeople } from '../rebuild/with-stores.ts';
import { type ErasuresWork, withRows } from './stores.ts';
import { toLine } from './times.ts';

/** `erasures scrub`: looks for rows, links and consents of all people who were ever erased, and deletes them. */
export async function scrub({ context, records, isJson, terminal }: ErasuresWork): Promise<ExitCode> {
  const { wallClockMs, stop: signal } = context;
  terminal.progress('looking for rows of people who were erased');
  const scrubbed = await withPeople(context, ({ guards }) =>
    withRows(context, (rows) =>
      scrubRows({
        rows,
        records,
        wallClockMs,
        signal,
        people: guards,
        onSurvivors: (survivors, look) => {
          for (const each of survivors) terminal.progress(`check ${look} found ${toText(each)}: deleting`);
        },
      }),
    ),
  );
  const { fences, unfinished, found, swept } = scrubbed;
  if (isJson) terminal.result(JSON.stringify(scrubbed));
  else {
    const leftOut = unfinished === 0 ? '' : `; ${unfinished} of erasures under way left out`;
    terminal.result(toLine('looked for', `${fences} fences${leftOut}`));
    for (const each of found) terminal.result(toLine('FOUND', toText(each)));
    for (const each of swept) terminal.result(toLine('swept', toText(each)));
    terminal.result(
      found.length === 0 ? 'nothing is left' : 'nothing is left now; find out who wrote it behind the fence',
    );
  }
  return found.length === 0 ? EXIT.ok : EXIT.failed;
}

/** `erasures remove`: removes deleted rows from the files, and marks the receipts. */
export async function remove({ context, records, isJson, terminal }: ErasuresWork): Promise<ExitCode> {
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
        if (files !== lastFiles) terminal.progress(`${files} replaced files are still there`);
        lastFiles = files;
      },
    }),
  );
  const { fences, foundOnDisk, marked, deferred } = removal;
  if (isJson) terminal.result(JSON.stringify(removal));
  else {
    terminal.result(toLine('looked for', `${fences} fences in files`));
    for (const each of foundOnDisk) terminal.result(toLine('IN FILES', toText(each)));
    const waiting =
      deferred === 0 ? '' : `, ${deferred} wait for the next removal: their people are being erased again`;
    terminal.result(toLine('receipts', `${marked} marked as physically erased${waiting}`));
    if (foundOnDisk.length > 0) terminal.result('no receipt was marked: npm run erasures -- scrub, then remove again');
  }
  return foundOnDisk.length === 0 ? EXIT.ok : EXIT.failed;
}

const IN_REDIS: Readonly<Record<string, string>> = { 'redis.i': 'linked identities', 'redis.c': 'consents' };

const toText = ({ table, column, as, environmentId, rows }: Survivors) =>
  table in IN_REDIS
    ? `${rows} ${IN_REDIS[table]} in Redis of ${environmentId}`
    : toRowsText({ table, column, as, environmentId, rows });

const toRowsText = ({ table, column, as, environmentId, rows }: Survivors) =>
  `${rows} rows in ${table} of ${environmentId} by ${column}${as === 'own' ? '' : ', carried by somebody else'}`;
