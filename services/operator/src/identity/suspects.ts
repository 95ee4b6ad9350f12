import { randomBytes } from 'node:crypto';
import { MissingEpochFault, RULING_REASONS, type Ruling, type Suspect, toRulingFact } from '@playline/people';
import { EXIT, type ExitCode, isConfirmed, type Terminal, UnreachableError } from '../command.ts';
import type { EnvironmentOptions } from '../keys/subcommands.ts';
import { withPeople } from '../rebuild/with-stores.ts';
import { awaitTables, createOpenKeyer, type JsonOptions, toTimeText } from './context.ts';
import { environmentOf, type Subject, type SubjectOptions, subjectOf } from './subject.ts';
import type { UnlinkContext, WriteOptions } from './unlink.ts';

/** Refused facts that `allow` publishes again: more than a day of the largest person that the graph keeps. */
const REPUBLISHED_MAX = 10_000;

const EFFECTS: Readonly<Record<Ruling['verdict'], string>> = {
  allow: 'The id can then link more anonymous ids, and its refused links are decided again.',
  block:
    'The id then links no more identities. Those that it has linked stay together: split them with identity unlink.',
};

/** `identity suspects list`: ids that link anonymous ids as no person does. */
export async function listSuspects(
  context: UnlinkContext,
  { json = false, ...options }: EnvironmentOptions & JsonOptions,
  terminal: Terminal,
): Promise<void> {
  const environmentId = environmentOf(options);
  const found = await withPeople(context, ({ graph }) => graph.suspects(environmentId));
  for (const one of found) terminal.result(json ? toJson(one) : toLine(one));
  if (found.length === 0 && !json) terminal.result(`No id of ${environmentId} is held.`);
}

/** `identity suspects allow` and `block`. */
export async function ruleOn(
  context: UnlinkContext,
  options: SubjectOptions & WriteOptions & Pick<WantedRuling, 'verdict' | 'querySeconds'>,
  terminal: Terminal,
): Promise<ExitCode> {
  const { verdict, querySeconds } = options;
  const subject = subjectOf(options, createOpenKeyer(context));
  if (!(await isConfirmed(EFFECTS[verdict], options, terminal))) {
    terminal.progress('nothing was changed');
    return EXIT.failed;
  }
  const again = await rule(context, { subject, verdict, querySeconds, waitMs: options.waitSeconds * 1000 });
  const outcome = verdict === 'allow' ? `allowed; ${again} refused links are decided again` : 'blocked';
  terminal.result(options.json === true ? JSON.stringify({ state: outcome, again }) : outcome);
  return EXIT.ok;
}

interface WantedRuling {
  readonly subject: Subject;
  readonly verdict: Ruling['verdict'];
  readonly waitMs: number;
  readonly querySeconds: number;
}

/** @returns how many refused facts were published again */
async function rule(context: UnlinkContext, { subject, verdict, waitMs, querySeconds }: WantedRuling): Promise<number> {
  const { environmentId, key } = subject;
  const kind = subject.kind ?? (await kindOf(context, subject));
  const log = await context.openUnlinkLog();
  try {
    const messageId = randomBytes(16);
    const parts = { environmentId, messageId, traceId: randomBytes(16).toString('hex'), receivedAt: Date.now() };
    await log.publish(toRulingFact({ verdict, key, kind }, parts));
    const decision = await log.awaitDecision(messageId, waitMs);
    if (decision === null)
      throw new UnreachableError(
        `The linkers have not decided it within ${waitMs / 1000} s. It is in the log and will be decided: ` +
          'npm run status shows whether they run. Then repeat this command, which is safe',
      );
    if (decision.reason !== RULING_REASONS[verdict]) throw new Error(`the linkers refused it: ${decision.reason}`);
    if (verdict === 'block') return 0;
    const tables = await awaitTables(context);
    const rows = await tables.linksOf(environmentId, { keys: [key] }, { limit: REPUBLISHED_MAX, querySeconds });
    const refused = rows.filter(
      ({ reason, position: place }) => reason === 'suspect' && place.generation === decision.generation,
    );
    return await log.publishAgain(refused.map(({ position: place }) => place));
  } finally {
    await log.close();
  }
}

/** Kind of an identity that was given by its key. */
async function kindOf(context: UnlinkContext, { environmentId, key }: Subject): Promise<Ruling['kind']> {
  const members = await withPeople(context, async (people) => {
    if ((await people.readEpoch()) === null) throw new MissingEpochFault();
    return people.graph.membersOf(environmentId, key);
  });
  return members.find((member) => member.key.equals(key))?.kind ?? 'untyped';
}

const toLine = ({ key, state, since }: Suspect) =>
  `${key.toString('hex')}  ${state.padEnd('blocked'.length)}  since ${toTimeText(since)}`;
const toJson = ({ key, state, since }: Suspect) => JSON.stringify({ key: key.toString('hex'), state, since });
