import { Option } from '@commander-js/extra-typings';
import { toUuidText } from '@playline/contracts';
import { ERASURE_STATES, type Erasure, type ErasureState, stateOf } from '@playline/erasure';
import { type CreateCommand, command, EXIT, type ExitCode, endWith, UsageError, wholeNumberFrom } from '../command.ts';
import { show } from '../erasures/show.ts';
import {
  type ErasuresContext,
  type ErasuresWork,
  type ErasureWork,
  parseErasureId,
  withRecords,
} from '../erasures/stores.ts';
import { toAgeText, toSpanText } from '../erasures/times.ts';
import { remove, scrub } from '../erasures/upkeep.ts';
import { verify } from '../erasures/verify.ts';
import { hidingArguments, type JsonOptions, printSummary, toTimeText } from '../identity/context.ts';
import { environmentOf, environmentOption, projectOption } from '../identity/subject.ts';
import type { EnvironmentOptions } from '../keys/subcommands.ts';

const ABOUT = `
An erasure is named by the id that the gateway returned in x-erasure-id. No command prints an id or a key of a person.
All commands may run beside the eraser, and can be interrupted and repeated.

Need CLICKHOUSE_URL with an account that may delete; verify and scrub also need REDIS_URL; or a stack that runs here
(.playline/stack.json).

Exit codes: 0 done, 1 rows were found or are left, or the erasure is unfinished or unknown, 2 wrong arguments, 3 a store
does not answer.`;

const LIST = `
States:
  waiting            no receipt yet
  erased             no query finds a row; masked rows are in files until the next removal
  physically-erased  no row is in a file
  log-expired        the log has no record of it either`;

const VERIFY = `
Checks rows, files, links and consents, and that the keys are those that were erased. Data received after the cut-off is
new data of the person.`;

const SCRUB = '\nThe eraser does this daily. A row that is found is an incident: something was written behind a fence.';

const REMOVE = `
Rewrites files with deleted rows, waits until the old files are gone (about eight minutes), checks the others, and marks
the receipts. The eraser does this nightly.`;

/** Longer lists are useless; `--after` continues. */
const ERASURES_MAX = 1_000;
/** States as values of an option. */
const CHOICES = ERASURE_STATES.map((state) => state.replace(' ', '-'));
const STATE_WIDTH = ERASURE_STATES.map((state) => state.length).reduce(
  (most, each) => Math.max(most, each),
  Number.NEGATIVE_INFINITY,
);

const json = () => new Option('--json', 'print the result as JSON; of list one line for each erasure');

export const createErasuresCommand =
  (context: ErasuresContext): CreateCommand =>
  (terminal) => {
    const run = async (options: JsonOptions, act: (work: ErasuresWork) => Promise<ExitCode>): Promise<void> => {
      try {
        endWith(
          await withRecords(context, (records) => act({ context, records, isJson: options.json === true, terminal })),
        );
      } catch (fault) {
        if (!context.stop.aborted) throw fault;
        terminal.progress('interrupted: nothing is half done, run it again');
        endWith(EXIT.failed);
      }
    };
    const onOne = (name: string, description: string, act: (work: ErasureWork) => Promise<ExitCode>) =>
      command(name, description)
        .argument('<id>', 'id of the erasure, as x-erasure-id had it')
        .addOption(json())
        .action((id, options) => {
          const erasureId = parseErasureId(id);
          return run(options, (work) => act({ ...work, erasureId }));
        });
    const onAll = (name: string, description: string, act: (work: ErasuresWork) => Promise<ExitCode>) =>
      command(name, description)
        .addOption(json())
        .action((options) => run(options, act));
    const erasures = command('erasures', 'list, show and verify erasures; find what is left, remove it from files')
      .addCommand(
        command('list', 'list requests, the newest first, and the state of each')
          .addOption(environmentOption())
          .addOption(projectOption())
          .addOption(new Option('--state <state>', 'only erasures in this state').choices(CHOICES))
          .addOption(
            new Option('--max <number>', `maximum number of erasures, at most ${ERASURES_MAX}`)
              .argParser(wholeNumberFrom(1, ERASURES_MAX))
              .default(20),
          )
          .option('--after <id>', 'continue after this erasure')
          .addOption(json())
          .addHelpText('after', LIST)
          .action((options) => {
            const wanted = toWanted(options);
            return run(options, (work) => list(work, wanted));
          }),
      )
      .addCommand(onOne('show', 'show the receipt: times, counts, ends of the log, hash of the keys', show))
      .addCommand(onOne('verify', 'check that everything in a receipt is gone', verify).addHelpText('after', VERIFY))
      .addCommand(onAll('scrub', 'find and delete rows of people who were erased', scrub).addHelpText('after', SCRUB))
      .addCommand(onAll('remove', 'remove deleted rows from files', remove).addHelpText('after', REMOVE))
      .addHelpText('after', ABOUT);
    return hidingArguments(erasures);
  };

interface ListOptions extends EnvironmentOptions {
  readonly state?: string | undefined;
  readonly max: number;
  readonly after?: string | undefined;
}

interface ListQuery {
  readonly erasuresMax: number;
  readonly environmentId: string | undefined;
  readonly state: ErasureState | undefined;
  readonly after: Buffer | null;
}

/** @throws UsageError for invalid options of a list, before anything is opened */
const toWanted = ({ max, after, state = '', ...named }: ListOptions): ListQuery => ({
  erasuresMax: max,
  environmentId: named.environment === undefined ? undefined : environmentOf(named),
  state: ERASURE_STATES[CHOICES.indexOf(state)],
  after: after === undefined ? null : parseErasureId(after),
});

/** `erasures list`: requests, the newest first, and the state of each. */
async function list({ context, records, isJson, terminal }: ErasuresWork, wanted: ListQuery): Promise<ExitCode> {
  const { erasuresMax, environmentId, state, after } = wanted;
  const erasures = await records.readErasures({
    // One more shows whether there are others.
    erasuresMax: erasuresMax + 1,
    ...(environmentId !== undefined && { environmentId }),
    ...(state !== undefined && { state }),
    ...(after !== null && { after: await requestOf(records, after) }),
  });
  const shown = erasures.slice(0, erasuresMax);
  const nowMs = context.wallClockMs();
  for (const erasure of shown) terminal.result(isJson ? JSON.stringify(toJson(erasure)) : toLine(erasure, nowMs));
  if (shown.length === 0) printSummary(terminal, { json: isJson }, 'no erasures');
  if (erasures.length > shown.length)
    terminal.progress(`there are more: --after ${toUuidText(shown.at(-1)!.request.erasureId)}`);
  return EXIT.ok;
}

async function requestOf(records: ErasuresWork['records'], erasureId: Buffer) {
  const [request] = await records.readRequests([erasureId]);
  if (request === undefined) throw new UsageError('--after: no erasure has this id');
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
