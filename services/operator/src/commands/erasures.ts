import { toUuidText } from '@playline/contracts';
import { ERASURE_STATES, type Erasure, type ErasureState, stateOf } from '@playline/erasure';
import {
  type Command,
  choiceOf,
  EXIT,
  type ExitCode,
  numberOf,
  parseOptions,
  type Terminal,
  textOf,
  UsageError,
  wordOf,
} from '../command.ts';
import { show } from '../erasures/show.ts';
import { type ErasuresContext, type ErasuresWork, parseErasureId, withRecords } from '../erasures/stores.ts';
import { toAgeText, toSpanText } from '../erasures/times.ts';
import { remove, scrub } from '../erasures/upkeep.ts';
import { verify } from '../erasures/verify.ts';
import { say, toTimeText } from '../identity/question.ts';
import { environmentOf } from '../identity/subject.ts';

const HELP = `usage: operator erasures list    [--environment E] [--state S] [--max 20] [--after ID] [--json]
       operator erasures show    ID [--json]
       operator erasures verify  ID [--json]
       operator erasures scrub   [--json]
       operator erasures remove  [--json]          (npm run erasures -- list)

ID is what the gateway has answered to the request, in x-erasure-id. No word prints an id or a key of a person.

list    requests, the newest first, and how far each has come:
          waiting            no receipt yet
          erased             no query finds a row; rows stand in files, masked, until the next removal
          physically-erased  no row stands in a file
          log-expired        and the log holds nothing of it either
show    the receipt: times, counts by place, ends of the log, hash of the keys, what is still to come and when
verify  looks now for what the receipt says is gone: rows, files, links and consents; and whether the keys looked for are
        those that were erased. What came behind the cut-off is the person's new data
scrub   looks for rows of everybody who was ever erased, and sweeps what it finds. The eraser does so daily; what is found
        is an incident: something wrote behind a fence
remove  writes files with deleted rows anew, waits until the files from before are gone (some eight minutes), looks into
        the rest and marks the receipts. The eraser does so by night

  --environment production, development, or the id of an environment as tables have it: demo-production
  --project demo
  --state       one of the four
  --max 20      so many at most, 1000 at most     --after  go on behind this one
  --json        JSON: of list one line each, else one object

list, show, scrub and remove need CLICKHOUSE_URL with its account, which may delete; verify REDIS_URL too; or a stack that
runs here (.playline/stack.json). All may run beside the eraser, and be ended and begun again at any time.

Exit code: 0 done, 1 it failed: something is left, was found, or the erasure is unfinished or unknown, 2 wrong words, 3 a
store does not answer.`;

const text = { type: 'string' } as const;
const json = { type: 'boolean', default: false } as const;
const LIST_OPTIONS = {
  environment: text,
  state: text,
  max: text,
  after: text,
  json,
  project: { type: 'string', default: 'demo' },
} as const;

interface Word {
  readonly options: Parameters<typeof parseOptions>[1];
  /** Whether it needs the id of an erasure. */
  readonly isOfOne: boolean;
  readonly act: (work: ErasuresWork & { erasureId: Buffer }) => Promise<ExitCode>;
  /** Checks the arguments before any store is opened. @throws UsageError */
  readonly check?: (values: ErasuresWork['values']) => void;
}

const WORDS: Readonly<Record<string, Word>> = {
  list: { options: LIST_OPTIONS, isOfOne: false, act: list, check: checkList },
  show: { options: { json }, isOfOne: true, act: show },
  verify: { options: { json }, isOfOne: true, act: verify },
  scrub: { options: { json }, isOfOne: false, act: scrub },
  remove: { options: { json }, isOfOne: false, act: remove },
};

export function createErasuresCommand(context: ErasuresContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const [name = '', ...rest] = args;
    const word = wordOf(WORDS, name);
    const { values, words } = parseOptions(rest, word.options, rest.length);
    // The argument is not repeated: it may be the id of a person.
    if (words.length > Number(word.isOfOne)) throw new UsageError('a word too many');
    const erasureId = word.isOfOne ? parseErasureId(words[0]) : Buffer.alloc(0);
    word.check?.(values);
    try {
      return await withRecords(context, (records) => word.act({ context, records, values, terminal, erasureId }));
    } catch (fault) {
      if (!context.stop.aborted) throw fault;
      terminal.progress('ended before it was done: nothing is half done, run it again');
      return EXIT.failed;
    }
  };
  const summary = 'list, show and verify erasures; look for what is left, remove it from files';
  return { name: 'erasures', summary, help: HELP, run };
}

/** Longer lists are useless; `--after` continues. */
const ERASURES_MAX = 1_000;
const STATE_WIDTH = ERASURE_STATES.map((state) => state.length).reduce(
  (most, each) => Math.max(most, each),
  Number.NEGATIVE_INFINITY,
);

/** `erasures list`: requests, the newest first, and the state of each. */
async function list({ context, records, values, terminal }: ErasuresWork): Promise<ExitCode> {
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
function checkList(values: ErasuresWork['values']): void {
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
