/** `identity unlink`: splits identities from a person to whom they do not belong. */
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
import {
  confirm,
  EXIT,
  type ExitCode,
  type JsonOption,
  type Terminal,
  UnreachableError,
  UsageError,
} from '../command.ts';
import type { EnvironmentOptions } from '../keys/subcommands.ts';
import { withPeople } from '../rebuild/with-stores.ts';
import { createOpenKeyer, type QueryContext, toTimeText } from './context.ts';
import { readHousehold } from './resolve.ts';
import { type Subject, subjectOf } from './subject.ts';
import type { UnlinkLog } from './unlink-log.ts';

export interface UnlinkContext extends QueryContext {
  /** @throws UnreachableError when log or registry does not answer */
  readonly openUnlinkLog: () => Promise<UnlinkLog>;
}

/** Options of commands that wait for a decision of the linkers. */
export interface WriteOptions extends JsonOption {
  readonly yes?: boolean | undefined;
  readonly waitSeconds: number;
}

interface SubjectsOptions extends EnvironmentOptions {
  readonly kind?: readonly string[] | undefined;
  readonly id?: readonly string[] | undefined;
  readonly key?: readonly string[] | undefined;
}

interface EnvironmentSplit extends PersonSplit {
  readonly environmentId: string;
}

export async function unlink(
  context: UnlinkContext,
  options: SubjectsOptions & WriteOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const subjects = subjectsOf(options, createOpenKeyer(context));
  const split = await withPeople(context, async (people) =>
    splitOf(subjects, await readHousehold(people, subjects[0])),
  );
  if (typeof split === 'string') {
    terminal.progress(`${split} Nothing was changed.`);
    return EXIT.failed;
  }
  // With --json the result is the outcome, and the plan is progress.
  const show = options.json === true ? terminal.progress : terminal.result;
  for (const line of toPlanLines(split)) show(line);
  await confirm(toWarning(split), options, terminal);
  return report(await requestUnlink(context, split, options.waitSeconds * 1000), options, terminal);
}

/** Each by kind and id, or by key; one kind may apply to all ids. @throws UsageError */
function subjectsOf(options: SubjectsOptions, openKeyer: () => IdentityKeyer): [Subject, ...Subject[]] {
  const { environment, project, kind: kinds = [], id: ids = [], key: keys = [] } = options;
  if (ids.length > 0 && kinds.length !== 1 && kinds.length !== ids.length)
    throw new UsageError('expected a --kind for each --id, or one for all');
  if (kinds.length > 0 && ids.length === 0) throw new UsageError('expected --id with --kind');
  const named = [
    ...ids.map((id, at) => ({ environment, project, kind: kinds[at] ?? kinds[0], id })),
    ...keys.map((key) => ({ environment, project, key })),
  ];
  const [first = { environment, project }, ...others] = named;
  return [subjectOf(first, openKeyer), ...others.map((one) => subjectOf(one, openKeyer))];
}

/** The split, or a sentence why there is nothing to split. */
function splitOf(subjects: readonly [Subject, ...Subject[]], household: PersonMembers): EnvironmentSplit | string {
  const keys = subjects.map(({ key }) => key);
  const split = splitPerson(keys, household);
  return typeof split === 'string' ? SPLIT_BLOCKERS[split] : { ...split, environmentId: subjects[0].environmentId };
}

function toPlanLines({ personKey, leaving, staying }: PersonSplit): string[] {
  const toLines = (members: readonly Member[], verb: string) =>
    members.map(
      ({ key, kind, linkedAt }) =>
        `  ${verb}  ${key.toString('hex')}  ${kind.padEnd('anonymous'.length)}  linked ${toTimeText(linkedAt)}`,
    );
  return [`person ${personKey.toString('hex')}`, ...toLines(leaving, 'leaves'), ...toLines(staying, 'stays ')];
}

function toWarning({ leaving, staying }: PersonSplit): string {
  const identities = leaving.length === 1 ? '1 identity leaves' : `${leaving.length} identities leave`;
  return (
    `${identities} the person and become a person of their own, ${staying.length} stay. Earlier messages do not join the ` +
    'two again; later ones may.'
  );
}

/** @throws UnreachableError without a decision in time */
async function requestUnlink(
  context: UnlinkContext,
  { environmentId, leaving }: EnvironmentSplit,
  waitMs: number,
): Promise<IdentityDecisionRecord> {
  const log = await context.openUnlinkLog();
  try {
    const messageId = randomBytes(16);
    const traceId = randomBytes(16).toString('hex');
    const named = leaving.map(({ key, kind }) => ({ key, kind }));
    await log.publish(toUnlinkFact({ environmentId, messageId, traceId, receivedAt: Date.now(), unlink: named }));
    const decision = await log.awaitDecision(messageId, waitMs);
    if (decision !== null) return decision;
    throw new UnreachableError(
      `The linkers have not decided it within ${waitMs / 1000} s. It is in the log and will be decided when the linkers ` +
        'have caught up (npm run status), or when an erasure that holds this person is complete. identity members shows the ' +
        'result',
    );
  } finally {
    await log.close();
  }
}

function report(decision: IdentityDecisionRecord, options: JsonOption, terminal: Terminal): ExitCode {
  const { unlink: stays, root, moved, reason } = decision;
  const { outcome } = decisionTextOf(decision);
  const hex = (key: Buffer) => key.toString('hex');
  const position = `${decision.generation}/${decision.partition}/${decision.offset}`;
  if (options.json === true)
    terminal.result(
      JSON.stringify({
        outcome: stays === null ? 'unchanged' : outcome,
        reason,
        place: position,
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
    terminal.result(`It is fact ${position} of the log. Queries show it once the event writer has stored it.`);
    return EXIT.ok;
  }
  terminal.progress(`nothing was split: ${whyNot({ stays, outcome, reason })}`);
  return EXIT.failed;
}

function whyNot({ stays, outcome, reason }: { stays: unknown; outcome: string; reason: string }): string {
  if (stays === null) return 'the linkers run a release that cannot split persons. Upgrade them and repeat the command';
  return outcome === 'refused' ? refusalText(reason) : 'there is nothing to split';
}
