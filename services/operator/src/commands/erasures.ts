import { Option } from '@commander-js/extra-typings';
import { toUuidText } from '@playline/contracts';
import { ERASURE_STATES, type Erasure, stateOf } from '@playline/erasure';
import { withStore } from '../await-store.ts';
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
  type ErasureDeps,
  type ErasuresContext,
  type ErasuresDeps,
  parseErasureId,
  remove,
  scrub,
  show,
  toAgeText,
  toDurationText,
  verify,
} from '../erasures/subcommands.ts';
import { hideArguments, printSummary, toTimeText } from '../identity/context.ts';
import { environmentOf, environmentOption, projectOption } from '../identity/subject.ts';
import type { EnvironmentOptions } from '../keys/subcommands.ts';

const ABOUT = `
An erasure is identified by the id that the gateway returned in the x-erasure-id header. The output never contains ids
or keys of a person. All commands are safe to repeat, and safe to run while the eraser is running.

Requires CLICKHOUSE_URL with an account that can delete rows, and REDIS_URL for verify and scrub; or a local stack.

Exit codes: 0 success, 1 remaining data found or erasure unfinished or unknown, 2 invalid arguments, 3 store not
responding.`;

const LIST = `
States:
  waiting            no receipt has been issued yet
  erased             queries return no rows; deleted rows remain in files until the next removal
  physically-erased  no rows remain in files
  log-expired        no rows remain in files, and the log records have expired`;

const VERIFY = `
Checks rows, files, links, consents and the key hash of the receipt. Data received after the cut-off is ignored.`;

const SCRUB = '\nThe eraser scrubs daily. Treat any row found as an incident: a service wrote data despite a fence.';

const REMOVE = `
Rewrites files that contain deleted rows, waits about eight minutes until ClickHouse has removed the old files, checks
all other files, and updates the receipts. The eraser runs this every night.`;

const ERASURES_MAX = 1_000;
const CHOICES = ERASURE_STATES.map((state) => state.replace(' ', '-'));
const STATE_WIDTH = ERASURE_STATES.reduce((most, { length }) => Math.max(most, length), 0);

export const createErasuresCommand =
  (context: ErasuresContext): CreateCommand =>
  (terminal) => {
    const run = async (options: JsonOption, handler: (deps: ErasuresDeps) => Promise<ExitCode>): Promise<void> => {
      try {
        const code = await withStore('ClickHouse', await context.openRecords(), (records) =>
          handler({ context, records, json: options.json === true, terminal }),
        );
        endWith(code);
      } catch (fault) {
        if (!context.stop.aborted) throw fault;
        terminal.progress('interrupted: run the command again to resume');
        endWith(EXIT.failed);
      }
    };
    const erasureCommand = (name: string, description: string, handler: (deps: ErasureDeps) => Promise<ExitCode>) =>
      jsonCommand(name, description)
        .argument('<id>', 'erasure id, as returned in x-erasure-id')
        .action((id, options) => {
          const erasureId = parseErasureId(id);
          return run(options, (deps) => handler({ ...deps, erasureId }));
        });
    const globalCommand = (name: string, description: string, handler: (deps: ErasuresDeps) => Promise<ExitCode>) =>
      jsonCommand(name, description).action((options) => run(options, handler));
    const erasures = command('erasures', 'list and verify erasures; find and remove remaining data')
      .addCommand(
        jsonCommand('list', 'list erasures and their states, newest first')
          .addOption(environmentOption())
          .addOption(projectOption())
          .addOption(new Option('--state <state>', 'show only erasures in this state').choices(CHOICES))
          .addOption(
            new Option('--max <number>', `maximum number of erasures, up to ${ERASURES_MAX}`)
              .argParser(wholeNumberFrom(1, ERASURES_MAX))
              .default(20),
          )
          .option('--after <id>', 'continue the list after this erasure')
          .addHelpText('after', LIST)
          .action((options) => {
            const query = toQuery(options);
            return run(options, (deps) => list(deps, query));
          }),
      )
      .addCommand(erasureCommand('show', 'show the receipt of an erasure', show))
      .addCommand(
        erasureCommand('verify', 'verify that all data covered by an erasure has been deleted', verify).addHelpText(
          'after',
          VERIFY,
        ),
      )
      .addCommand(
        globalCommand('scrub', 'find and delete rows that belong to erased people', scrub).addHelpText('after', SCRUB),
      )
      .addCommand(
        globalCommand('remove', 'physically remove deleted rows from files', remove).addHelpText('after', REMOVE),
      )
      .addHelpText('after', ABOUT);
    return hideArguments(erasures);
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

async function list({ context, records, json, terminal }: ErasuresDeps, query: ListQuery): Promise<ExitCode> {
  const { erasuresMax, environmentId, state, after } = query;
  const erasures = await records.readErasures({
    // One extra erasure shows whether there are more.
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

async function requestOf(records: ErasuresDeps['records'], erasureId: Buffer) {
  const [request] = await records.readRequests([erasureId]);
  if (request === undefined) throw new UsageError('--after: no erasure with this id exists');
  return request;
}

function toLine({ request, receipt }: Erasure, nowMs: number): string {
  const { erasureId, environmentId, requestedAt } = request;
  const state = stateOf(receipt);
  const start = `${toUuidText(erasureId)}  ${environmentId}  ${state.padEnd(STATE_WIDTH)}`;
  const requested = `requested ${toTimeText(requestedAt)}, ${toAgeText(requestedAt, nowMs)}`;
  if (receipt === null) return `${start}  ${requested}`;
  const took = toDurationText(receipt.visiblyErasedAt - receipt.acceptedAt);
  return `${start}  ${requested}  erased within ${took}  identities ${receipt.closureCount}`;
}

/** Times are ISO 8601, or null for steps that have not happened yet. */
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
