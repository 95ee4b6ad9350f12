/** Implements the subcommands of `erasures`, except `list`. */
import { fromUuidText, toUuidText } from '@playline/contracts';
import {
  type ErasureReceipt,
  type ErasureRecords,
  type ErasureRows,
  isVerified,
  removeFromDisk,
  type Survivors,
  scrub as scrubRows,
  stateOf,
  type Verification,
  verifyReceipt,
} from '@playline/erasure';
import type { People } from '@playline/people';
import { withOpened } from '../await-store.ts';
import { EXIT, type ExitCode, plural, printResult, type Terminal, UsageError } from '../command.ts';
import { toTimeText } from '../identity/context.ts';
import { withPeople } from '../rebuild/with-stores.ts';

/** Each opener throws UnreachableError when its address is not configured. */
export interface ErasuresContext {
  readonly openRows: () => Promise<ErasureRows>;
  readonly openRecords: () => Promise<ErasureRecords>;
  readonly openPeople: () => Promise<People>;
  readonly wallClockMs: () => number;
  readonly stop: AbortSignal;
}

export interface ErasuresDeps {
  readonly context: ErasuresContext;
  readonly records: ErasureRecords;
  readonly json: boolean;
  readonly terminal: Terminal;
}

export interface ErasureDeps extends ErasuresDeps {
  readonly erasureId: Buffer;
}

/** Does not wait for ClickHouse, because the erasure records were already opened. */
async function withRows<T>({ openRows }: ErasuresContext, work: (rows: ErasureRows) => Promise<T>): Promise<T> {
  return withOpened(await openRows(), work);
}

const ERASURE_ID = /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

/** Error messages omit the argument, which may be a personal id. @throws UsageError */
export function parseErasureId(text: string): Buffer {
  if (!ERASURE_ID.test(text))
    throw new UsageError('expected an erasure id from x-erasure-id, such as 0192f3a4-5b6c-7d8e-9f00-112233445566');
  return fromUuidText(text);
}

const UNITS: readonly [name: string, ms: number][] = [
  ['d', 24 * 60 * 60 * 1000],
  ['h', 60 * 60 * 1000],
  ['min', 60 * 1000],
  ['s', 1000],
];

/** Formats a duration in the largest unit in which the value is at least two, such as `90 s` or `47 h`. */
export function toDurationText(ms: number): string {
  const [name, unit] = UNITS.find(([, each]) => ms >= 2 * each) ?? ['s', 1000];
  return `${Math.max(0, Math.floor(ms / unit))} ${name}`;
}

export function toAgeText(atMs: number, nowMs: number): string {
  return atMs <= nowMs ? `${toDurationText(nowMs - atMs)} ago` : `in ${toDurationText(atMs - nowMs)}`;
}

const LABEL_WIDTH = 12;

const toLine = (label: string, text: string): string => `${label.padEnd(LABEL_WIDTH)}${text}`;

/** Labels the first of several lines. */
const toLabelledLines = (label: string, texts: readonly string[]): string[] =>
  texts.map((text, index) => toLine(index === 0 ? label : '', text));

export async function show(deps: ErasureDeps): Promise<ExitCode> {
  const { context, records, json, terminal, erasureId } = deps;
  const receipt = await records.readReceipt(erasureId);
  if (receipt === null) return explainAbsence(deps);
  printResult(terminal, { json }, toReceiptJson(receipt), toReceiptLines(receipt, context.wallClockMs()));
  return EXIT.ok;
}

/** Reports that an erasure without a receipt is unfinished or unknown. */
async function explainAbsence({ context, records, terminal, erasureId }: ErasureDeps): Promise<ExitCode> {
  const [request] = await records.readRequests([erasureId]);
  const id = toUuidText(erasureId);
  if (request === undefined)
    terminal.progress(
      `erasure ${id} does not exist. New requests appear within seconds of the gateway's response. Otherwise, check the id ` +
        'and the deployment',
    );
  else {
    const { requestedAt, environmentId } = request;
    const age = toAgeText(requestedAt, context.wallClockMs());
    terminal.progress(
      `erasure ${id} of ${environmentId} is unfinished: requested ${toTimeText(requestedAt)}, ${age}, no receipt yet`,
    );
  }
  return EXIT.failed;
}

function toReceiptLines(receipt: ErasureReceipt, nowMs: number): string[] {
  const { acceptedAt } = receipt;
  const stepLine: StepLine = (name, ms, note) =>
    toLine(name, [toTimeText(ms), `${toAgeText(ms, nowMs)}${note === undefined ? '' : `, ${note}`}`].join('  '));
  const partitions = Object.keys(receipt.logEnds).sort();
  const logEnds = partitions.map((partition) => `${partition}  ${receipt.logEnds[partition]}`);
  const sinceRequest = (ms: number) => `${toDurationText(ms - acceptedAt)} after the request`;
  return [
    toLine('erasure', `${toUuidText(receipt.erasureId)}  ${receipt.environmentId}  ${stateOf(receipt)}`),
    stepLine('accepted', acceptedAt),
    stepLine('cut-off', receipt.cutoffAt, 'data created or received up to this time is erased'),
    stepLine('fenced', receipt.fencedAt, sinceRequest(receipt.fencedAt)),
    stepLine('invisible', receipt.visiblyErasedAt, `${sinceRequest(receipt.visiblyErasedAt)}: queries return no rows`),
    physicalLine(receipt, stepLine),
    logLine(receipt, { stepLine, nowMs }),
    toLine('identities', String(receipt.closureCount)),
    toLine('hash', `${receipt.closureHash.toString('hex')}  SHA-256 of the identity keys`),
    ...toLabelledLines('stores', countsOf(receipt)),
    ...toLabelledLines('log ends', logEnds),
    toLine('trace', receipt.traceId),
  ];
}

type StepLine = (name: string, ms: number, note?: string) => string;

function physicalLine({ physicallyErasedAt }: ErasureReceipt, stepLine: StepLine): string {
  if (physicallyErasedAt !== null) return stepLine('physical', physicallyErasedAt, 'no rows remain in files');
  return toLine('physical', 'pending: removed tonight, or with npm run erasures -- remove');
}

function logLine(
  { logExpiredAt, logExpiresAt }: ErasureReceipt,
  { stepLine, nowMs }: { stepLine: StepLine; nowMs: number },
): string {
  if (logExpiredAt !== null)
    return stepLine('log', logExpiredAt, 'every partition now starts at or after the log ends below');
  const due = `${toTimeText(logExpiresAt)}, ${toAgeText(logExpiresAt, nowMs)}`;
  return toLine('log', `pending: ${logExpiresAt < nowMs ? 'OVERDUE SINCE' : 'due'} ${due}`);
}

function countsOf({ deleted, verified }: ErasureReceipt): string[] {
  const stores = [...new Set([...Object.keys(deleted), ...Object.keys(verified)])].sort();
  const width = stores.reduce((most, { length }) => Math.max(most, length), 0);
  const toText = (count: number | undefined) => (count === undefined ? 'not counted' : String(count));
  return stores.map(
    (store) => `${store.padEnd(width)}  deleted ${toText(deleted[store])}, remaining ${toText(verified[store])}`,
  );
}

function toReceiptJson(receipt: ErasureReceipt): object {
  const time = (ms: number | null) => (ms === null ? null : toTimeText(ms));
  const { erasureId, environmentId, closureHash, closureCount, deleted, verified, logEnds, traceId } = receipt;
  return {
    erasureId: toUuidText(erasureId),
    environmentId,
    state: stateOf(receipt),
    closureHash: closureHash.toString('hex'),
    closureCount,
    cutoffAt: time(receipt.cutoffAt),
    acceptedAt: time(receipt.acceptedAt),
    fencedAt: time(receipt.fencedAt),
    visiblyErasedAt: time(receipt.visiblyErasedAt),
    physicallyErasedAt: time(receipt.physicallyErasedAt),
    logExpiresAt: time(receipt.logExpiresAt),
    logExpiredAt: time(receipt.logExpiredAt),
    deleted,
    verified,
    logEnds,
    traceId,
  };
}

export async function verify(deps: ErasureDeps): Promise<ExitCode> {
  const { context, records, json, terminal, erasureId } = deps;
  const { wallClockMs } = context;
  // Checked first, so that a missing receipt is reported even if Redis is unavailable.
  if ((await records.readReceipt(erasureId)) === null) return explainAbsence(deps);
  const verification = await withPeople(context, (people) =>
    withRows(context, (rows) => verifyReceipt({ records, rows, people, wallClockMs, checkDisk: true }, erasureId)),
  );
  if (verification === null) return explainAbsence(deps);
  const isClean = isVerified(verification);
  const line = { ...toVerificationJson(verification), isVerified: isClean };
  printResult(terminal, { json }, line, toVerificationLines(verification, isClean));
  return isClean ? EXIT.ok : EXIT.failed;
}

function toVerificationLines(verification: Verification, isClean: boolean): string[] {
  const { receipt, identities, remaining, onDisk } = verification;
  const width = Object.keys(remaining).reduce((most, { length }) => Math.max(most, length), 0);
  const inFiles = (store: string) => {
    const rows = onDisk?.[store];
    if (rows === undefined) return '';
    return `  in files ${rows}${rows > 0 && receipt.physicallyErasedAt === null ? ', removal pending' : ''}`;
  };
  const counts = Object.entries(remaining).map(([store, count]) => `${store.padEnd(width)}  ${count}${inFiles(store)}`);
  return [
    toLine('erasure', `${toUuidText(receipt.erasureId)}  ${receipt.environmentId}`),
    toLine('identities', `${identities} of ${receipt.closureCount} searched`),
    toLine('hash', describeHash(verification)),
    ...toLabelledLines('remaining', counts),
    isClean ? 'verified: no data remains' : `NOT VERIFIED: ${reasonOf(verification)}`,
  ];
}

function describeHash({ hash, receipt, identities, laterErasures }: Verification): string {
  const later = laterErasures.map(toUuidText).join(', ');
  if (hash === 'matches') return 'matches the keys that were erased';
  if (hash === 'differs') return 'DIFFERS: the keys in the fences and the request are not the keys that were erased';
  const cause =
    later === ''
      ? 'the fences are missing or belong to another erasure of the person'
      : `the fences belong to a later erasure of the person: ${later}`;
  return `cannot be checked: ${plural(receipt.closureCount - identities, 'unknown key')}; ${cause}`;
}

function reasonOf({ hash, remaining, onDisk, receipt, laterErasures }: Verification): string {
  const isAny = (counts: Readonly<Record<string, number>>) => Object.values(counts).some((count) => count > 0);
  if (isAny(remaining)) return 'data from before the cut-off remains: run npm run erasures -- scrub';
  if (receipt.physicallyErasedAt !== null && onDisk !== null && isAny(onDisk))
    return 'files contain rows, but the receipt reports none: run npm run erasures -- remove';
  if (hash === 'differs') return 'the key hash does not match the receipt';
  const [later] = laterErasures;
  const next = later === undefined ? '' : `; verify erasure ${toUuidText(later)}, which covers the other keys`;
  return `some keys could not be searched${next}`;
}

function toVerificationJson({ receipt, identities, hash, laterErasures, remaining, onDisk }: Verification): object {
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

/** Deletes remaining rows, links and consents of all erased people. */
export async function scrub({ context, records, json, terminal }: ErasuresDeps): Promise<ExitCode> {
  const { wallClockMs, stop: signal } = context;
  terminal.progress('searching for data of erased people');
  const scrubbed = await withPeople(context, ({ guards }) =>
    withRows(context, (rows) =>
      scrubRows({
        rows,
        records,
        wallClockMs,
        signal,
        people: guards,
        onSurvivors: (survivors, pass) => {
          for (const each of survivors) terminal.progress(`pass ${pass} found ${toSurvivorText(each)}; deleting`);
        },
      }),
    ),
  );
  const { fences, unfinished, found, swept } = scrubbed;
  const skipped = unfinished === 0 ? '' : `; skipped ${plural(unfinished, 'fence')} of unfinished erasures`;
  printResult(terminal, { json }, scrubbed, [
    toLine('searched', `${plural(fences, 'fence')}${skipped}`),
    ...found.map((each) => toLine('FOUND', toSurvivorText(each))),
    ...swept.map((each) => toLine('deleted', toSurvivorText(each))),
    found.length === 0
      ? 'no data remains'
      : 'all data found was deleted; find out which service wrote data despite a fence',
  ]);
  return found.length === 0 ? EXIT.ok : EXIT.failed;
}

/** Removes deleted rows from files, and updates the receipts. */
export async function remove({ context, records, json, terminal }: ErasuresDeps): Promise<ExitCode> {
  const { wallClockMs, stop: signal } = context;
  terminal.progress(
    'rewriting files that contain deleted rows; ClickHouse removes the old files after about eight minutes',
  );
  let lastFiles = 0;
  const removal = await withRows(context, (rows) =>
    removeFromDisk({
      rows,
      records,
      wallClockMs,
      signal,
      onReplaced: (files) => {
        if (files !== lastFiles) terminal.progress(`waiting for the removal of ${plural(files, 'old file')}`);
        lastFiles = files;
      },
    }),
  );
  const { fences, foundOnDisk, marked, deferred } = removal;
  const waiting =
    deferred === 0 ? '' : `, ${deferred} deferred to the next removal because the person is being erased again`;
  const next = 'no receipts were updated: run npm run erasures -- scrub, then run remove again';
  printResult(terminal, { json }, removal, [
    toLine('searched', `${plural(fences, 'fence')} in files`),
    ...foundOnDisk.map((each) => toLine('IN FILES', toSurvivorText(each))),
    toLine('receipts', `${marked} marked as physically erased${waiting}`),
    ...(foundOnDisk.length > 0 ? [next] : []),
  ]);
  return foundOnDisk.length === 0 ? EXIT.ok : EXIT.failed;
}

const IN_REDIS: Readonly<Record<string, string>> = { 'redis.i': 'linked identities', 'redis.c': 'consents' };

const toSurvivorText = ({ table, column, as, environmentId, rows }: Survivors) =>
  table in IN_REDIS
    ? `${IN_REDIS[table]} in Redis of ${environmentId}: ${rows}`
    : `rows in ${table} of ${environmentId} by ${column}${as === 'own' ? '' : ', of another identity'}: ${rows}`;
