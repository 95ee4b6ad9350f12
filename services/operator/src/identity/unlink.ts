import { randomBytes } from 'node:crypto';
import { decisionTextOf, type IdentityDecisionRecord } from '@playline/contracts';
import {
  type IdentityKeyer,
  type Member,
  type PersonMembers,
  type PersonSplit,
  refusalText,
  SPLIT_BLOCKERS,
  splitPerson,
  toUnlinkFact,
} from '@playline/people';
import { EXIT, type ExitCode, isConfirmed, type Terminal, UnreachableError, UsageError } from '../command.ts';
import type { EnvironmentOptions } from '../keys/subcommands.ts';
import { withPeople } from '../rebuild/with-stores.ts';
import { createOpenKeyer, type JsonOptions, type QueryContext, toTimeText } from './context.ts';
import { readHousehold } from './resolve.ts';
import { type Subject, subjectOf } from './subject.ts';
import type { UnlinkLog } from './unlink-log.ts';

export interface UnlinkContext extends QueryContext {
  /** @throws UnreachableError when log or registry do not answer */
  readonly openUnlinkLog: () => Promise<UnlinkLog>;
}

/** Options of commands that wait for a decision of the linkers. */
export interface WriteOptions extends JsonOptions {
  readonly yes?: boolean | undefined;
  readonly waitSeconds: number;
}

/** Options that name several identities. */
interface SubjectsOptions extends EnvironmentOptions {
  readonly kind?: readonly string[] | undefined;
  readonly id?: readonly string[] | undefined;
  readonly key?: readonly string[] | undefined;
}

/** Who leaves and who stays, in which environment. */
interface EnvironmentParting extends PersonSplit {
  readonly environmentId: string;
}

/** `identity unlink`: splits identities from the rest of a person to whom they do not belong. */
export async function unlink(
  context: UnlinkContext,
  options: SubjectsOptions & WriteOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const subjects = subjectsOf(options, createOpenKeyer(context));
  const parting = await withPeople(context, async (people) =>
    partingOf(subjects, await readHousehold(people, subjects[0])),
  );
  if (typeof parting === 'string') {
    terminal.progress(`${parting} Nothing was changed.`);
    return EXIT.failed;
  }
  // The result for a script is the outcome; the plan that a person confirms is shown as progress then.
  const show = options.json === true ? terminal.progress : terminal.result;
  for (const line of toPlanLines(parting)) show(line);
  if (!(await isConfirmed(toWarning(parting), options, terminal))) {
    terminal.progress('nothing was changed');
    return EXIT.failed;
  }
  const decision = await requestUnlink(context, parting, options.waitSeconds * 1000);
  return report(decision, options, terminal);
}

/** Each by kind and id, or by key; one kind may apply to all ids. @throws UsageError without an id */
function subjectsOf(options: SubjectsOptions, openKeyer: () => IdentityKeyer): [Subject, ...Subject[]] {
  const { environment, project, kind: kinds = [], id: ids = [], key: keys = [] } = options;
  if (ids.length > 0 && kinds.length !== 1 && kinds.length !== ids.length)
    throw new UsageError('give a --kind for each --id, or one for all');
  if (kinds.length > 0 && ids.length === 0) throw new UsageError('a --kind without its --id');
  const named = [
    ...ids.map((id, at) => ({ environment, project, kind: kinds[at] ?? kinds[0], id })),
    ...keys.map((key) => ({ environment, project, key })),
  ];
  const [first = { environment, project }, ...others] = named;
  return [subjectOf(first, openKeyer), ...others.map((one) => subjectOf(one, openKeyer))];
}

/** The split, or a sentence that says why nothing can be split. */
function partingOf(subjects: readonly [Subject, ...Subject[]], household: PersonMembers): EnvironmentParting | string {
  const keys = subjects.map(({ key }) => key);
  const parting = splitPerson(keys, household);
  return typeof parting === 'string'
    ? SPLIT_BLOCKERS[parting]
    : { ...parting, environmentId: subjects[0].environmentId };
}

function toPlanLines({ personKey, leaving: gone, staying: stayed }: PersonSplit): string[] {
  const toLines = (members: readonly Member[], verb: string) =>
    members.map(
      ({ key, kind, linkedAt }) =>
        `  ${verb}  ${key.toString('hex')}  ${kind.padEnd('anonymous'.length)}  linked ${toTimeText(linkedAt)}`,
    );
  return [`person ${personKey.toString('hex')}`, ...toLines(gone, 'leaves'), ...toLines(stayed, 'stays ')];
}

function toWarning({ leaving: gone, staying: stayed }: PersonSplit): string {
  const identities = gone.length === 1 ? '1 identity leaves' : `${gone.length} identities leave`;
  return (
    `${identities} the person and will be one of their own, ${stayed.length} stay. Messages up to now do not join the ` +
    'two again; later ones may.'
  );
}

/** @throws UnreachableError when there is no decision in time */
async function requestUnlink(
  context: UnlinkContext,
  parting: EnvironmentParting,
  waitMs: number,
): Promise<IdentityDecisionRecord> {
  const log = await context.openUnlinkLog();
  try {
    const messageId = randomBytes(16);
    const traceId = randomBytes(16).toString('hex');
    const { environmentId, leaving: gone } = parting;
    const named = gone.map(({ key, kind }) => ({ key, kind }));
    await log.publish(toUnlinkFact({ environmentId, messageId, traceId, receivedAt: Date.now(), unlink: named }));
    const decision = await log.awaitDecision(messageId, waitMs);
    if (decision !== null) return decision;
    throw new UnreachableError(
      `The linkers have not decided it within ${waitMs / 1000} s. It is in the log and will be decided when the linkers ` +
        'run and have caught up (npm run status), or when an erasure that holds this person is done. identity members ' +
        'shows whether it was',
    );
  } finally {
    await log.close();
  }
}

function report(decision: IdentityDecisionRecord, options: JsonOptions, terminal: Terminal): ExitCode {
  const { unlink: stays, root, moved, reason } = decision;
  const { outcome } = decisionTextOf(decision);
  const hex = (key: Buffer) => key.toString('hex');
  const place = `${decision.generation}/${decision.partition}/${decision.offset}`;
  if (options.json === true)
    terminal.result(
      JSON.stringify({
        outcome: stays === null ? 'unchanged' : outcome,
        reason,
        place,
        split: moved.length === 0 ? null : { personKey: hex(root), keys: moved.map(({ key }) => hex(key)) },
        stayed: !stays?.stayed.length
          ? null
          : { personKey: hex(stays.stayedRoot), keys: stays.stayed.map(({ key }) => hex(key)) },
      }),
    );
  if (stays !== null && outcome === 'unlinked') {
    if (options.json === true) return EXIT.ok;
    terminal.result(`split off: person ${hex(root)} of ${moved.length}`);
    terminal.result(`stays:     person ${hex(stays.stayedRoot)} of ${stays.stayed.length}`);
    terminal.result(
      `It is fact ${place} of the log. Queries show it when the event writer has written it, usually within a second.`,
    );
    return EXIT.ok;
  }
  terminal.progress(`nothing was split: ${whyNot({ stays, outcome, reason })}`);
  return EXIT.failed;
}

function whyNot({ stays, outcome, reason }: { stays: unknown; outcome: string; reason: string }): string {
  if (stays === null) return 'the linkers run a release that cannot split persons. Upgrade them and repeat the command';
  if (outcome === 'refused') return refusalText(reason);
  return 'there is nothing left to split';
}
