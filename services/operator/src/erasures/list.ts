import { toUuidText } from '@playline/contracts';
import { ERASURE_STATES, type Erasure, type ErasureState, stateOf } from '@playline/erasure';
import { choiceOf, EXIT, type ExitCode, numberOf, textOf, UsageError } from '../command.ts';
import { say, toTimeText } from '../identity/question.ts';
import { environmentOf } from '../identity/subject.ts';
import { type ErasuresWork, parseErasureId } from './stores.ts';
import { toAgeText, toSpanText } from './times.ts';

/** Longer lists are useless; `--after` continues. */
const ERASURES_MAX = 1_000;
const STATE_WIDTH = ERASURE_STATES.map((state) => state.length).reduce(
  (most, each) => Math.max(most, each),
  Number.NEGATIVE_INFINITY,
);

/** `erasures list`: requests, the newest first, and the state of each. */
export async function list({ context, records, values, terminal }: ErasuresWork): Promise<ExitCode> {
  const erasuresMax = Math.trunc(numberOf(values, 'max', { min: 1, max: ERASURES_MAX, fallback: 20 }));
  const after = textOf(values, 'after');
  const [environmentId, state] = [narrowedTo(values), stateIn(values)];
  const erasures = await records.readErasures({
    // One more shows whether there are others.
    erasuresMax: erasuresMax + 1,
    ...(environmentId !== undefined && { environmentId }),
    ...(state !== undefined && { state }),
    ...(after !== undefined && { after: await placeOf(records, after) }),
  });
  const shown = erasures.slice(0, erasuresMax);
  const nowMs = context.wallClockMs();
  for (const erasure of shown)
    terminal.result(values.json === true ? JSON.stringify(toJson(erasure)) : toLine(erasure, nowMs));
  if (shown.length === 0) say(terminal, values, 'no erasures');
  if (erasures.length > shown.length)
    terminal.progress(`there are more: --after ${toUuidText(shown.at(-1)!.request.erasureId)}`);
  return EXIT.ok;
}

/** @throws UsageError for invalid options of a list, before anything is opened */
export function checkList(values: ErasuresWork['values']): void {
  numberOf(values, 'max', { min: 1, max: ERASURES_MAX, fallback: 20 });
  const after = textOf(values, 'after');
  if (after !== undefined) parseErasureId(after);
  narrowedTo(values);
  stateIn(values);
}

const narrowedTo = (values: ErasuresWork['values']) =>
  values.environment === undefined ? undefined : environmentOf(values);

/** States as values of an option. */
const CHOICES = ERASURE_STATES.map((state) => state.replace(' ', '-'));

function stateIn(values: ErasuresWork['values']): ErasureState | undefined {
  if (values.state === undefined) return undefined;
  return ERASURE_STATES[CHOICES.indexOf(choiceOf(values, 'state', { choices: CHOICES }))];
}

async function placeOf(records: ErasuresWork['records'], word: string) {
  const [request] = await records.readRequests([parseErasureId(word)]);
  if (request === undefined) throw new UsageError('--after: no erasure of this id is known');
  return request;
}

function toLine({ request, receipt }: Erasure, nowMs: number): string {
  const { erasureId, environmentId, requestedAt } = request;
  const state = stateOf(receipt);
  const start = `${toUuidText(erasureId)}  ${environmentId}  ${state.padEnd(STATE_WIDTH)}`;
  const requested = `requested ${toTimeText(requestedAt)}, ${toAgeText(requestedAt, nowMs)}`;
  if (receipt === null) return `${start}  ${requested}`;
  const took = toSpanText(receipt.visiblyErasedAt - receipt.acceptedAt);
  return `${start}  ${requested}  erased within ${took}  identities ${receipt.closureCount}`;
}

/** Times as texts; null for steps still to come. */
function toJson({ request, receipt }: Erasure): object {
  const time = (ms: number | null | undefined) => (ms === null || ms === undefined ? null : toTimeText(ms));
  return {
    erasureId: toUuidText(request.erasureId),
    environmentId: request.environmentId,
    state: stateOf(receipt),
    requestedAt: time(request.requestedAt),
    cutoffAt: time(request.cutoffAt),
    visiblyErasedAt: time(receipt?.visiblyErasedAt),
    physicallyErasedAt: time(receipt?.physicallyErasedAt),
    logExpiredAt: time(receipt?.logExpiredAt),
    identities: receipt?.closureCount ?? null,
  };
}
