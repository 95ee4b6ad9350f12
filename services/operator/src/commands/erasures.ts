import { Option } from '@commander-js/extra-typings';
import { toUuidText } from '@playline/contracts';
import { ERASURE_STATES, type Erasure, stateOf } from '@playline/erasure';
import {
  type CreateCommand,
  command,
  EXIT,
  type ExitCode,
  endWith,
  type JsonOption,
  jsonCommand,
  printResult,
  UsageError,
  wholeNumberFrom,
} from '../command.ts';
import {
  type ErasuresContext,
  type ErasuresWork,
  type ErasureWork,
  parseErasureId,
  remove,
  scrub,
  show,
  toAgeText,
  toSpanText,
  verify,
  withRecords,
} from '../erasures/subcommands.ts';
import { hidingArguments, printSummary, toTimeText } from '../identity/context.ts';
import { environmentOf, environmentOption, projectOption } from '../identity/subject.ts';
import type { EnvironmentOptions } from '../keys/subcommands.ts';

const ABOUT = `
An erasure is identified by the id that the gateway returned in x-erasure-id. No command prints ids or keys of a person.
All commands are safe while the eraser runs, and to repeat after an interruption.

Needs CLICKHOUSE_URL with an account that may delete; verify and scrub also need REDIS_URL; or a local stack.

Exit codes: 0 success, 1 data was found or remains, or the erasure is unfinished or unknown, 2 invalid arguments, 3 a
store does not respond.`;

const LIST = `
States:
  waiting            no receipt yet
  erased             no query finds a row; masked rows remain in files until the next removal
  physically-erased  no row remains in a file
  log-expired        the log has expired too`;

const VERIFY = `
Verifies rows, files, links and consents, and that the keys match the receipt. Data received after the cut-off is new data.`;

const SCRUB = '\nThe eraser does this daily. Any row found is an incident: a service wrote data despite a fence.';

const REMOVE = `
Rewrites files with deleted rows, waits until the old files are gone (about eight minutes), checks all other files, and
marks the receipts. The eraser does this nightly.`;

const ERASURES_MAX = 1_000;
/** States as option values. */
const CHOICES = ERASURE_STATES.map((state) => state.replace(' ', '-'));
const STATE_WIDTH = ERASURE_STATES.reduce((most, { length }) => Math.max(most, length), 0);

export const createErasuresCommand =
  (context: ErasuresContext): CreateCommand =>
  (terminal) => {
    const run = async (options: JsonOption, act: (work: ErasuresWork) => Promise<ExitCode>): Promise<void> => {
      try {
        endWith(
          await withRecords(context, (records) => act({ context, records, json: options.json === true, terminal })),
        );
      } catch (fault) {
        if (!context.stop.aborted) throw fault;
        terminal.progress('interrupted: run the command again');
        endWith(EXIT.failed);
      }
    };
    const onOne = (name: string, description: string, act: (work: ErasureWork) => Promise<ExitCode>) =>
      jsonCommand(name, description)
        .argument('<id>', 'id of the erasure, as in x-erasure-id')
        .action((id, options) => {
          const erasureId = parseErasureId(id);
          return run(options, (work) => act({ ...work, erasureId }));
        });
    const onAll = (name: string, description: string, act: (work: ErasuresWork) => Promise<ExitCode>) =>
      jsonCommand(name, description).action((options) => run(options, act));
    const erasures = command('erasures', 'list, show and verify erasures; find and remove remaining data')
      .addCommand(
        jsonCommand('list', 'list requests and their states, newest first')
          .addOption(environmentOption())
          .addOption(projectOption())
          .addOption(new Option('--state <state>', 'only erasures in this state').choices(CHOICES))
          .addOption(
            new Option('--max <number>', `maximum number of erasures, at most ${ERASURES_MAX}`)
              .argParser(wholeNumberFrom(1, ERASURES_MAX))
              .default(20),
          )
          .option('--after <id>', 'continue after this erasure')
          .addHelpText('after', LIST)
          .action((options) => {
            const query = toQuery(options);
            return run(options, (work) => list(work, query));
          }),
      )
      .addCommand(onOne('show', 'show the receipt: times, counts, log offsets, hash of the keys', show))
      .addCommand(onOne('verify', 'check that all data in a receipt is deleted', verify).addHelpText('after', VERIFY))
      .addCommand(onAll('scrub', 'find and delete rows of erased people', scrub).addHelpText('after', SCRUB))
      .addCommand(onAll('remove', 'remove deleted rows from files', remove).addHelpText('after', REMOVE))
      .addHelpText('after', ABOUT);
    return hidingArguments(erasures);
  };

interface ListOptions extends EnvironmentOptions {
  readonly state?: string | undefined;
  readonly max: number;
  readonly after?: string | undefined;
}

type ListQuery = ReturnType<typeof toQuery>;

/** @throws UsageError before stores are opened */
const toQuery = ({ max, after, state = '', ...named }: ListOptions) => ({
  erasuresMax: max,
  environmentId: named.environment === undefined ? undefined : environmentOf(named),
  state: ERASURE_STATES[CHOICES.indexOf(state)],
  after: after === undefined ? null : parseErasureId(after),
});

async function list({ context, records, json, terminal }: ErasuresWork, query: ListQuery): Promise<ExitCode> {
  const { erasuresMax, environmentId, state, after } = query;
  const erasures = await records.readErasures({
    // Reads one more than requested, to detect further erasures.
    erasuresMax: erasuresMax + 1,
    ...(environmentId !== undefined && { environmentId }),
    ...(state !== undefined && { state }),
    ...(after !== null && { after: await requestOf(records, after) }),
  });
  const shown = erasures.slice(0, erasuresMax);
  const nowMs = context.wallClockMs();
  for (const erasure of shown) printResult(terminal, { json }, toJson(erasure), toLine(erasure, nowMs));
  if (shown.length === 0) printSummary(terminal, { json }, 'no erasures');
  if (erasures.length > shown.length)
    terminal.progress(`more erasures: --after ${toUuidText(shown.at(-1)!.request.erasureId)}`);
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

/** Times are ISO 8601; null for future steps. */
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
