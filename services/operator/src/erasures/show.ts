import { toUuidText } from '@playline/contracts';
import { type ErasureReceipt, stateOf } from '@playline/erasure';
import { EXIT, type ExitCode } from '../command.ts';
import { toTimeText } from '../identity/context.ts';
import type { ErasureWork } from './stores.ts';
import { toAgeText, toLine, toLinesOf, toSpanText } from './times.ts';

/** `erasures show`: one receipt, for people. */
export async function show(work: ErasureWork): Promise<ExitCode> {
  const { context, records, isJson, terminal, erasureId } = work;
  const receipt = await records.readReceipt(erasureId);
  if (receipt === null) return explainAbsence(work);
  if (isJson) terminal.result(JSON.stringify(toJson(receipt)));
  else for (const line of toLines(receipt, context.wallClockMs())) terminal.result(line);
  return EXIT.ok;
}

/** Says whether an erasure without a receipt is unfinished or unknown. */
export async function explainAbsence({ context, records, terminal, erasureId }: ErasureWork): Promise<ExitCode> {
  const [request] = await records.readRequests([erasureId]);
  const id = toUuidText(erasureId);
  if (request === undefined) {
    terminal.progress(
      `no erasure ${id} is known: no request of this id was ever read from the topic. One that the gateway has only just ` +
        'answered is read within seconds; else the id, or the deployment, is another one',
    );
    return EXIT.failed;
  }
  const { requestedAt, environmentId } = request;
  const age = toAgeText(requestedAt, context.wallClockMs());
  terminal.progress(
    `erasure ${id} of ${environmentId} is unfinished: requested ${toTimeText(requestedAt)}, ${age}, and it has no receipt yet`,
  );
  return EXIT.failed;
}

function toLines(receipt: ErasureReceipt, nowMs: number): string[] {
  const { acceptedAt } = receipt;
  const at: At = (name, ms, note) =>
    toLine(name, [toTimeText(ms), `${toAgeText(ms, nowMs)}${note === undefined ? '' : `, ${note}`}`].join('  '));
  const behind = (ms: number) => `${toSpanText(ms - acceptedAt)} behind the request`;
  return [
    toLine('erasure', `${toUuidText(receipt.erasureId)}  ${receipt.environmentId}  ${stateOf(receipt)}`),
    at('accepted', acceptedAt),
    at('cut-off', receipt.cutoffAt, 'what happened or was received up to here is erased'),
    at('fenced', receipt.fencedAt, behind(receipt.fencedAt)),
    at('invisible', receipt.visiblyErasedAt, `${behind(receipt.visiblyErasedAt)}: no query found a row any more`),
    physicalLine(receipt, at),
    logLine(receipt, { at, nowMs }),
    toLine('identities', String(receipt.closureCount)),
    toLine('hash', `${receipt.closureHash.toString('hex')}  SHA-256 of their keys`),
    ...toLinesOf('places', countsOf(receipt)),
    ...toLinesOf(
      'log ends',
      Object.keys(receipt.logEnds)
        .sort()
        .map((place) => `${place}  ${receipt.logEnds[place]}`),
    ),
    toLine('trace', receipt.traceId),
  ];
}

type At = (name: string, ms: number, note?: string) => string;

function physicalLine({ physicallyErasedAt }: ErasureReceipt, at: At): string {
  if (physicallyErasedAt !== null) return at('physical', physicallyErasedAt, 'no row stood in a file any more');
  return toLine('physical', 'still to come: with the next nightly removal, or npm run erasures -- remove');
}

function logLine({ logExpiredAt, logExpiresAt }: ErasureReceipt, { at, nowMs }: { at: At; nowMs: number }): string {
  if (logExpiredAt !== null) return at('log', logExpiredAt, 'every partition began at or behind the ends below');
  const due = `${toTimeText(logExpiresAt)}, ${toAgeText(logExpiresAt, nowMs)}`;
  return toLine('log', `still to come: ${logExpiresAt < nowMs ? 'DUE SINCE' : 'due'} ${due}`);
}

function countsOf({ deleted, verified }: ErasureReceipt): string[] {
  const places = [...new Set([...Object.keys(deleted), ...Object.keys(verified)])].sort();
  const width = places
    .map((place) => place.length)
    .reduce((most, each) => Math.max(most, each), Number.NEGATIVE_INFINITY);
  const said = (count: number | undefined) => (count === undefined ? 'not counted' : String(count));
  return places.map(
    (place) => `${place.padEnd(width)}  deleted ${said(deleted[place])}, then found ${said(verified[place])}`,
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
