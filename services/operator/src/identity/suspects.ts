import { randomBytes } from 'node:crypto';
import { MissingEpochFault, RULING_REASONS, type Ruling, type Suspect, toRulingFact } from '@playline/people';
import { EXIT, type ExitCode, isMeant, numberOf, type Terminal, UnreachableError, UsageError } from '../command.ts';
import { withPeople } from '../rebuild/with-stores.ts';
import { awaitTables, createOpenKeyer, parseQuestion, QUERY_OPTIONS, querySecondsOf, toTimeText } from './question.ts';
import { environmentOf, SUBJECT_OPTIONS, type Subject, subjectOf } from './subject.ts';
import type { UnlinkContext } from './unlink.ts';

const OPTIONS = {
  ...SUBJECT_OPTIONS,
  ...QUERY_OPTIONS,
  yes: { type: 'boolean', default: false },
  'wait-seconds': { type: 'string' },
} as const;
const WAIT = { min: 1, max: 600, fallback: 30 } as const;
/** Refused facts that `allow` publishes again: more than a day of the largest person that the graph keeps. */
const REPUBLISHED_MAX = 10_000;

const QUESTIONS: Readonly<Record<Ruling['verdict'], string>> = {
  allow: 'The id may then link further anonymous ids, and its refused links are decided again.',
  block:
    'The id then links nobody any more. Identities that it has linked stay together: split them with identity unlink.',
};

/** `identity suspects list|allow|block`: ids that gather anonymous ids as no person does. */
export async function suspects(context: UnlinkContext, args: readonly string[], terminal: Terminal): Promise<ExitCode> {
  const action = args[1] ?? '';
  const values = parseQuestion(args.slice(1), OPTIONS);
  if (action === 'list') {
    const environmentId = environmentOf(values);
    const found = await withPeople(context, ({ graph }) => graph.suspects(environmentId));
    for (const one of found) terminal.result(values.json === true ? toJson(one) : toLine(one));
    if (found.length === 0 && values.json !== true) terminal.result(`No id of ${environmentId} is held.`);
    return EXIT.ok;
  }
  if (action !== 'allow' && action !== 'block') throw new UsageError('suspects: expected list, allow or block');
  const waitMs = numberOf(values, 'wait-seconds', WAIT) * 1000;
  const subject = subjectOf(values, createOpenKeyer(context));
  if (!(await isMeant(QUESTIONS[action], values, terminal))) {
    terminal.progress('nothing was done');
    return EXIT.failed;
  }
  const again = await rule(context, { subject, verdict: action, waitMs, querySeconds: querySecondsOf(values) });
  const outcome = action === 'allow' ? `allowed; ${again} refused links are decided again` : 'blocked';
  terminal.result(values.json === true ? JSON.stringify({ state: outcome, again }) : outcome);
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
      ({ reason, place }) => reason === 'suspect' && place.generation === decision.generation,
    );
    return await log.publishAgain(refused.map(({ place }) => place));
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
