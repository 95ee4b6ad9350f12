import { toUuidText } from '@playline/contracts';
import { type ErasureReceipt, stateOf } from '@playline/erasure';
import { EXIT, type ExitCode, printResult } from '../command.ts';
import { toTimeText } from '../identity/context.ts';
import { type ErasureWork, toAgeText, toLine, toLinesOf, toSpanText } from './work.ts';

/** `erasures show`: prints a receipt. */
export async function show(work: ErasureWork): Promise<ExitCode> {
  const { context, records, json, terminal, erasureId } = work;
  const receipt = await records.readReceipt(erasureId);
  if (receipt === null) return explainAbsence(work);
  printResult(terminal, { json }, toJson(receipt), toLines(receipt, context.wallClockMs()));
  return EXIT.ok;
}

/** Reports whether an erasure without a receipt is unfinished or unknown. */
export async function explainAbsence({ context, records, terminal, erasureId }: ErasureWork): Promise<ExitCode> {
  const [request] = await records.readRequests([erasureId]);
  const id = toUuidText(erasureId);
  if (request === undefined)
    terminal.progress(
      `no erasure ${id} is known. A new request is known within seconds of the gateway's answer; otherwise check the id and ` +
        'the deployment',
    );
  else {
    const { requestedAt, environmentId } = request;
    const age = toAgeText(requestedAt, context.wallClockMs());
    terminal.progress(
      `erasure ${id} of ${environmentId} is unfinished: requested ${toTimeText(requestedAt)}, ${age}, and without a receipt`,
    );
  }
  return EXIT.failed;
}

function toLines(receipt: ErasureReceipt, nowMs: number): string[] {
  const { acceptedAt } = receipt;
  const at: At = (name, ms, note) =>
    toLine(name, [toTimeText(ms), `${toAgeText(ms, nowMs)}${note === undefined ? '' : `, ${note}`}`].join('  '));
  const behind = (ms: number) => `${toSpanText(ms - acceptedAt)} after the request`;
  return [
    toLine('erasure', `${toUuidText(receipt.erasureId)}  ${receipt.environmentId}  ${stateOf(receipt)}`),
    at('accepted', acceptedAt),
    at('cut-off', receipt.cutoffAt, 'data that happened or was received until here is erased'),
    at('fenced', receipt.fencedAt, behind(receipt.fencedAt)),
    at('invisible', receipt.visiblyErasedAt, `${behind(receipt.visiblyErasedAt)}: no query finds a row`),
    physicalLine(receipt, at),
    logLine(receipt, { at, nowMs }),
    toLine('identities', String(receipt.closureCount)),
    toLine('hash', `${receipt.closureHash.toString('hex')}  SHA-256 of their keys`),
    ...toLinesOf('stores', countsOf(receipt)),
    ...toLinesOf(
      'log ends',
      Object.keys(receipt.logEnds)
        .sort()
        .map((partition) => `${partition}  ${receipt.logEnds[partition]}`),
    ),
    toLine('trace', receipt.traceId),
  ];
}

type At = (name: string, ms: number, note?: string) => string;

function physicalLine({ physicallyErasedAt }: ErasureReceipt, at: At): string {
  if (physicallyErasedAt !== null) return at('physical', physicallyErasedAt, 'no row remains in a file');
  return toLine('physical', 'pending: the next nightly removal, or npm run erasures -- remove');
}

function logLine({ logExpiredAt, logExpiresAt }: ErasureReceipt, { at, nowMs }: { at: At; nowMs: number }): string {
  if (logExpiredAt !== null) return at('log', logExpiredAt, 'every partition starts at or after the ends below');
  const due = `${toTimeText(logExpiresAt)}, ${toAgeText(logExpiresAt, nowMs)}`;
  return toLine('log', `pending: ${logExpiresAt < nowMs ? 'DUE SINCE' : 'due'} ${due}`);
}

function countsOf({ deleted, verified }: ErasureReceipt): string[] {
  const stores = [...new Set([...Object.keys(deleted), ...Object.keys(verified)])].sort();
  const width = stores.reduce((most, { length }) => Math.max(most, length), 0);
  const toText = (count: number | undefined) => (count === undefined ? 'not counted' : String(count));
  return stores.map(
    (store) => `${store.padEnd(width)}  deleted ${toText(deleted[store])}, then found ${toText(verified[store])}`,
  );
}

function toJson(receipt: ErasureReceipt): object {
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
