import { randomBytes } from 'node:crypto';
import { MissingEpochFault, RULING_REASONS, type Ruling, toRulingFact } from '@playline/people';
import {
  confirm,
  EXIT,
  type ExitCode,
  type JsonOption,
  printResult,
  type Terminal,
  UnreachableError,
} from '../command.ts';
import type { EnvironmentOptions } from '../keys/subcommands.ts';
import { withPeople } from '../rebuild/with-stores.ts';
import { awaitTables, createOpenKeyer, toTimeText } from './context.ts';
import { environmentOf, type Subject, type SubjectOptions, subjectOf } from './subject.ts';
import type { UnlinkContext, WriteOptions } from './unlink.ts';

/** Refused facts that `allow` publishes again. */
const REPUBLISHED_MAX = 10_000;

const EFFECTS: Readonly<Record<Ruling['verdict'], string>> = {
  allow: 'The id can then link more anonymous ids, and its refused links are decided again.',
  block: 'The id then links no more identities. Split those that it has linked with identity unlink.',
};

/** `identity suspects list`. */
export async function listSuspects(
  context: UnlinkContext,
  { json = false, ...options }: EnvironmentOptions & JsonOption,
  terminal: Terminal,
): Promise<void> {
  const environmentId = environmentOf(options);
  const found = await withPeople(context, ({ graph }) => graph.suspects(environmentId));
  for (const one of found) {
    const { key, state, since } = one;
    const text = `${key.toString('hex')}  ${state.padEnd('blocked'.length)}  since ${toTimeText(since)}`;
    printResult(terminal, { json }, { key: key.toString('hex'), state, since }, text);
  }
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
  await confirm(EFFECTS[verdict], options, terminal);
  const again = await rule(context, { subject, verdict, querySeconds, waitMs: options.waitSeconds * 1000 });
  const outcome = verdict === 'allow' ? `allowed; ${again} refused links are decided again` : 'blocked';
  printResult(terminal, options, { state: outcome, again }, outcome);
  return EXIT.ok;
}

interface WantedRuling {
  readonly subject: Subject;
  readonly verdict: Ruling['verdict'];
  readonly waitMs: number;
  readonly querySeconds: number;
}

/** @returns the number of refused facts that were published again */
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
        `The linkers have not decided it within ${waitMs / 1000} s. It is in the log and will be decided: check the linkers ` +
          'with npm run status, then repeat this command, which is safe',
      );
    if (decision.reason !== RULING_REASONS[verdict]) throw new Error(`the linkers refused it: ${decision.reason}`);
    if (verdict === 'block') return 0;
    const tables = await awaitTables(context);
    const rows = await tables.linksOf(environmentId, { keys: [key] }, { limit: REPUBLISHED_MAX, querySeconds });
    const refused = rows.filter(
      ({ reason, position }) => reason === 'suspect' && position.generation === decision.generation,
    );
    return await log.publishAgain(refused.map(({ position }) => position));
  } finally {
    await log.close();
  }
}

/** The kind of an identity that was given by its key. */
async function kindOf(context: UnlinkContext, { environmentId, key }: Subject): Promise<Ruling['kind']> {
  const members = await withPeople(context, async (people) => {
    if ((await people.readEpoch()) === null) throw new MissingEpochFault();
    return people.graph.membersOf(environmentId, key);
  });
  return members.find((member) => member.key.equals(key))?.kind ?? 'untyped';
}
