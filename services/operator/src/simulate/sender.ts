import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import type { Cast } from './cast.ts';
import { createDelivery, type Delivered, type DeliveryOptions } from './delivery.ts';
import type { Differences } from './differences.ts';
import { differencesOf, parseVerdict, type Verdict } from './expectation.ts';
import type { Ledger } from './ledger.ts';
import { MESSAGES_PATH, type Probe } from './probes.ts';
import { type Run, toMessageId } from './run.ts';
import { count, type Tally } from './tally.ts';
import type { Batch, Encoding } from './traffic.ts';

export interface SenderOptions extends Omit<DeliveryOptions, 'onRetry'> {
  readonly run: Run;
  readonly ledger: Ledger;
  readonly cast: Cast;
  readonly tally: Tally;
  readonly differences: Differences;
  readonly keyHeader: string;
  readonly publishableKey: string;
}

/** Sends batches and notes their results. */
export type SendBatch = (batch: Batch) => Promise<void>;

/** Cuts connections while the gateway works; its answer usually takes some milliseconds. */
const CUT_MAX_MS = 25;
/** Enough of an unexpected answer to recognise it. */
const SHOWN_CHARACTERS_MAX = 300;

export function createSendBatch(options: SenderOptions): SendBatch {
  const { ledger, cast, tally } = options;
  const post = createPost(options);
  const book = createBook(options);
  const report = createReport(options);
  return async (batch) => {
    tally.batches++;
    tally.messages += batch.messages;
    tally.bytes += batch.body.length;
    for (const sequence of batch.broken) ledger.set(sequence, 'rejected');
    for (const { sequence } of batch.sound) ledger.set(sequence, 'unknown');
    const { first, again } = await post(batch);
    const verdict = report(batch, first);
    // A resent batch must get the same answer as before.
    if (again !== null) report(batch, again, 'resent ');
    if (verdict !== null) return book(batch, verdict);
    const isDoubtful = first.kind === 'given up' || first.doubtful || batch.answerLost;
    if (!isDoubtful) for (const { sequence } of batch.sound) ledger.set(sequence, 'rejected');
    if (!isDoubtful) return;
    tally.unknownBatches++;
    cast.doubt(batch.household);
  };
}

function createPost(options: SenderOptions): (batch: Batch) => Promise<{ first: Delivered; again: Delivered | null }> {
  const { client, tally } = options;
  const deliver = createDelivery({ ...options, onRetry: (reason) => count(tally.retries, reason) });
  return async (batch) => {
    const headers = {
      ...headersOf(options),
      ...(batch.encoding === 'identity' ? {} : { 'content-encoding': batch.encoding }),
    };
    const body = encodeBody(batch.body, batch.encoding);
    const request = { method: 'POST', path: MESSAGES_PATH, headers, body } as const;
    if (batch.answerLost) {
      tally.lostAnswers++;
      await client.send({ ...request, cutAfterMs: Math.random() * CUT_MAX_MS }).catch(() => null);
    }
    const startedAt = performance.now();
    const first = await deliver(request);
    tally.latency.add(performance.now() - startedAt);
    if (!batch.resent) return { first, again: null };
    tally.resentBatches++;
    return { first, again: await deliver(request) };
  };
}

/**
 * Compares an answer with the expected one. The verdict is null when no comparison is possible: no answer, or one of
 * another kind.
 */
function createReport({ run, differences }: SenderOptions) {
  return (batch: Batch, delivered: Delivered, which = ''): Verdict | null => {
    // A missing answer is no fault of the gateway: it is then unknown whether the batch was stored.
    if (delivered.kind === 'given up') return null;
    const { status, text } = delivered.answer;
    const verdict = parseVerdict(text);
    const found =
      verdict === null
        ? [`answered ${status}: ${text.slice(0, SHOWN_CHARACTERS_MAX)}`]
        : differencesOf(batch.expectation, status, verdict);
    const first = toMessageId(run, batch.sound[0]?.sequence ?? batch.broken[0] ?? 0);
    for (const difference of found) differences.add('answer', `${which}batch of ${first}: ${difference}`);
    return verdict;
  };
}

/** Notes an acknowledged batch by its actual answer, since that is what a client relies on. */
function createBook({ run, ledger, cast, tally }: SenderOptions) {
  return (batch: Batch, verdict: Verdict): void => {
    const refused = new Set(verdict.rejections.map(({ messageId }) => messageId.toLowerCase()));
    tally.accepted += verdict.accepted;
    tally.rejected += verdict.rejected;
    for (const { errors } of verdict.rejections) for (const { code } of errors) count(tally.rejectedByCode, code);
    for (const message of batch.sound) {
      const isRefused = refused.has(toMessageId(run, message.sequence));
      ledger.set(message.sequence, isRefused ? 'rejected' : 'accepted');
      if (!isRefused) cast.accept(batch.household, message);
    }
  };
}

function headersOf({ keyHeader, publishableKey }: SenderOptions): Record<string, string> {
  return { 'content-type': 'application/json', [keyHeader]: publishableKey };
}

/** Sends an invalid request and checks its error envelope. */
export function createSendProbe(options: SenderOptions): (probe: Probe) => Promise<void> {
  const { tally, differences } = options;
  const deliver = createDelivery({ ...options, onRetry: (reason) => count(tally.retries, reason) });
  return async (probe) => {
    tally.probes++;
    const headers = Object.fromEntries(
      Object.entries({ ...headersOf(options), ...probe.headers }).filter(
        (header): header is [string, string] => header[1] !== null,
      ),
    );
    const delivered = await deliver({ method: probe.method, path: probe.path, headers, body: probe.toBody() });
    if (delivered.kind === 'given up') {
      differences.add('probe', `${probe.name}: never answered, ${delivered.reason}`);
      return;
    }
    const { status, text } = delivered.answer;
    const code = codeOf(text);
    if (status === probe.status && code === probe.code) return;
    const was = `${status} ${code}: ${text.slice(0, SHOWN_CHARACTERS_MAX)}`;
    differences.add('probe', `${probe.name}: expected ${probe.status} ${probe.code}, was ${was}`);
  };
}

/** `code` of a complete error envelope (contract, "Error envelope"); otherwise what is wrong with it. */
function codeOf(text: string): string {
  try {
    const body = JSON.parse(text) as Record<string, unknown>;
    const absent = ['message', 'link', 'trace_id', 'code', 'details'].filter((member) => !(member in body));
    return absent.length === 0 ? String(body.code) : `an envelope without ${absent.join(', ')}`;
  } catch {
    return 'no JSON';
  }
}

/** Encodes a body at the cheapest level: clients of games save CPU, not bytes. */
function encodeBody(body: string, encoding: Encoding): Buffer {
  const bytes = Buffer.from(body);
  if (encoding === 'gzip') return gzipSync(bytes, { level: 1 });
  if (encoding === 'deflate') return deflateSync(bytes, { level: 1 });
  if (encoding === 'br') return brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
  return encoding === 'zstd' ? zstdCompressSync(bytes) : bytes;
}
