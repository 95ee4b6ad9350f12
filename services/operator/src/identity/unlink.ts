/** Implements `identity unlink` and `identity suspects`. */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  createRecordReader,
  decisionTextOf,
  frameRecord,
  type IdentityDecisionRecord,
  type IdentityLinkRecord,
  identityDecisionCodec,
  identityLinkCodec,
  TOPICS,
} from '@playline/contracts';
import {
  type IdentityKeyer,
  type Member,
  MissingEpochFault,
  type PersonMembers,
  type PersonSplit,
  RULING_REASONS,
  type Ruling,
  refusalText,
  SPLIT_BLOCKERS,
  splitPerson,
  toRulingFact,
  toUnlinkFact,
} from '@playline/people';
import { type LogReader, type Producer, sendAll } from '@playline/stream';
import { awaitLog, awaitWritable, type Schemas, withOpened } from '../await-store.ts';
import {
  confirm,
  EXIT,
  type ExitCode,
  type JsonOption,
  printResult,
  type Terminal,
  throwUnconfirmed,
  UnreachableError,
  UsageError,
} from '../command.ts';
import type { EnvironmentOptions } from '../keys/subcommands.ts';
import { withPeople } from '../rebuild/with-stores.ts';
import { awaitTables, createOpenKeyer, type QueryContext, toTimeText } from './context.ts';
import { readMembers } from './resolve.ts';
import { environmentOf, type Subject, type SubjectOptions, subjectOf } from './subject.ts';

/** Publishes link facts and reads their decisions. */
export interface UnlinkLog {
  /** @throws UnreachableError when the brokers do not confirm the write */
  publish(fact: IdentityLinkRecord): Promise<void>;
  /** Returns the decision about a message, or null after `waitMs`. */
  awaitDecision(messageId: Buffer, waitMs: number): Promise<IdentityDecisionRecord | null>;
  /** Republishes facts that the topic still contains, so that they are decided again. @returns their number */
  republish(offsets: readonly { readonly partition: number; readonly offset: number }[]): Promise<number>;
  close(): Promise<void>;
}

interface UnlinkLogSource {
  readonly producer: Producer;
  readonly log: LogReader;
  readonly schemas: Schemas;
  readonly topicPrefix: string;
}

const POLL_MS = 100;
const NEXT_STEP = 'check the result with identity members, or run the command again';

/**
 * Reads only decisions that are published after this call. `close` also closes the producer and the reader.
 * @throws UnreachableError when the brokers or the registry do not respond, or the schema is not registered
 */
export async function openUnlinkLog(source: UnlinkLogSource): Promise<UnlinkLog> {
  const { producer, log, schemas, topicPrefix } = source;
  const linkTopic = topicPrefix + TOPICS.identityLinks.name;
  const close = async () => void (await Promise.all([producer.close(), log.close()]));
  try {
    const [schemaId] = await Promise.all([
      awaitWritable({ producer, schemas }, linkTopic, identityLinkCodec.schema),
      awaitLog(log),
    ]);
    const readDecision = await createDecisionReader(source, topicPrefix + TOPICS.identityDecisions.name);
    return {
      close,
      async publish(fact) {
        const value = frameRecord(schemaId, identityLinkCodec.encode(fact));
        const record = { topic: linkTopic, key: Buffer.from(fact.environmentId), value };
        return sendAll(producer, [record]).catch(throwUnconfirmed('the unlink', NEXT_STEP));
      },
      async republish(offsets) {
        let published = 0;
        for (const { partition, offset: start } of offsets)
          for await (const { key, value } of log.read({ topic: linkTopic, partition, start, end: start + 1 })) {
            const record = { topic: linkTopic, key, value: value ?? Buffer.alloc(0) };
            await sendAll(producer, [record]).catch(throwUnconfirmed('a link fact', NEXT_STEP));
            published++;
          }
        return published;
      },
      async awaitDecision(messageId, waitMs) {
        const endAt = performance.now() + waitMs;
        for (;;) {
          const found = await readDecision(messageId);
          if (found !== null || performance.now() > endAt) return found;
          await delay(POLL_MS);
        }
      },
    };
  } catch (fault) {
    await close();
    throw fault;
  }
}

/** Creates a function that searches the decisions published since its last call for the decision about a message. */
async function createDecisionReader({ log, schemas }: UnlinkLogSource, topic: string) {
  const next = new Map((await log.bounds(topic)).map(({ partition, end }) => [partition, end]));
  const { schemaOf } = schemas;
  const readValue = createRecordReader({ schemaOf, createReader: identityDecisionCodec.decoderOf });
  return async (messageId: Buffer): Promise<IdentityDecisionRecord | null> => {
    for (const { partition, end } of await log.bounds(topic)) {
      for await (const { value } of log.read({ topic, partition, start: next.get(partition) ?? 0, end })) {
        const read = await readValue(value);
        if (read.kind === 'record' && read.record.messageId.equals(messageId)) return read.record;
      }
      next.set(partition, end);
    }
    return null;
  };
}

export interface UnlinkContext extends QueryContext {
  /** @throws UnreachableError when the log or the registry does not respond */
  readonly openUnlinkLog: () => Promise<UnlinkLog>;
}

/** Options of commands that wait for the linkers. */
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

export async function unlink(context: UnlinkContext, options: SubjectsOptions & WriteOptions, terminal: Terminal) {
  const subjects = subjectsOf(options, createOpenKeyer(context));
  const split = await withPeople(context, async (people) => splitOf(subjects, await readMembers(people, subjects[0])));
  if (typeof split === 'string') {
    terminal.progress(`${split} Nothing was changed.`);
    return EXIT.failed;
  }
  // With --json, the plan is progress and the outcome is the result.
  const show = options.json === true ? terminal.progress : terminal.result;
  for (const line of toPlanLines(split)) show(line);
  await confirm(toWarning(split), options, terminal);
  return report(await requestUnlink(context, split, options.waitSeconds * 1000), options, terminal);
}

/** Parses identities by kind and id, or by key; a single kind applies to all ids. @throws UsageError */
function subjectsOf(options: SubjectsOptions, openKeyer: () => IdentityKeyer): [Subject, ...Subject[]] {
  const { environment, project, kind: kinds = [], id: ids = [], key: keys = [] } = options;
  if (ids.length > 0 && kinds.length !== 1 && kinds.length !== ids.length)
    throw new UsageError('pass one --kind per --id, or one --kind for all ids');
  if (kinds.length > 0 && ids.length === 0) throw new UsageError('--kind requires --id');
  const named = [
    ...ids.map((id, index) => ({ environment, project, kind: kinds[index] ?? kinds[0], id })),
    ...keys.map((key) => ({ environment, project, key })),
  ];
  const [first = { environment, project }, ...others] = named;
  return [subjectOf(first, openKeyer), ...others.map((each) => subjectOf(each, openKeyer))];
}

/** Returns the split, or why the person cannot be split. */
function splitOf(subjects: readonly [Subject, ...Subject[]], members: PersonMembers): EnvironmentSplit | string {
  const keys = subjects.map(({ key }) => key);
  const split = splitPerson(keys, members);
  return typeof split === 'string' ? SPLIT_BLOCKERS[split] : { ...split, environmentId: subjects[0].environmentId };
}

function toPlanLines({ personKey, leaving, staying }: PersonSplit): string[] {
  const toLines = (members: readonly Member[], verb: string) =>
    members.map(
      ({ key, kind, linkedAt }) =>
        `  ${verb}  ${key.toString('hex')}  ${kind.padEnd('anonymous'.length)}  linked ${toTimeText(linkedAt)}`,
    );
  return [`person ${personKey.toString('hex')}`, ...toLines(leaving, 'moves'), ...toLines(staying, 'stays')];
}

function toWarning({ leaving, staying }: PersonSplit): string {
  const identities = leaving.length === 1 ? '1 identity' : `${leaving.length} identities`;
  return (
    `This moves ${identities} to a new person (identities that stay: ${staying.length}). Earlier messages do not merge ` +
    'the persons again, but later messages can.'
  );
}

const newFactFields = (environmentId: string) => ({
  environmentId,
  messageId: randomBytes(16),
  traceId: randomBytes(16).toString('hex'),
  receivedAt: Date.now(),
});

/** Publishes a fact and waits for its decision. @throws UnreachableError after `waitMs` */
async function decide(log: UnlinkLog, fact: IdentityLinkRecord, waitMs: number, advice: string) {
  await log.publish(fact);
  const decision = await log.awaitDecision(fact.messageId, waitMs);
  if (decision !== null) return decision;
  throw new UnreachableError(
    `The linkers did not decide the request within ${waitMs / 1000} s. The request is in the log ${advice}`,
  );
}

async function requestUnlink(context: UnlinkContext, { environmentId, leaving }: EnvironmentSplit, waitMs: number) {
  const unlinked = leaving.map(({ key, kind }) => ({ key, kind }));
  const fact = toUnlinkFact({ ...newFactFields(environmentId), unlink: unlinked });
  const advice =
    'and will be decided when the linkers have caught up (npm run status), or when an erasure that holds this person has ' +
    'completed. Check the result with identity members';
  return withOpened(await context.openUnlinkLog(), (log) => decide(log, fact, waitMs, advice));
}

function report(decision: IdentityDecisionRecord, options: JsonOption, terminal: Terminal): ExitCode {
  const { unlink: split, root, moved, reason } = decision;
  const { outcome } = decisionTextOf(decision);
  const hex = (key: Buffer) => key.toString('hex');
  const position = `${decision.generation}/${decision.partition}/${decision.offset}`;
  const toPerson = (personKey: Buffer, identities: readonly { key: Buffer }[]) =>
    identities.length === 0 ? null : { personKey: hex(personKey), keys: identities.map(({ key }) => hex(key)) };
  const line = {
    outcome: split === null ? 'unchanged' : outcome,
    reason,
    place: position,
    split: toPerson(root, moved),
    stayed: split === null ? null : toPerson(split.stayedRoot, split.stayed),
  };
  if (options.json === true) terminal.result(JSON.stringify(line));
  if (split !== null && outcome === 'unlinked') {
    if (options.json === true) return EXIT.ok;
    terminal.result(`moved:  person ${hex(root)}, identities ${moved.length}`);
    terminal.result(`stayed: person ${hex(split.stayedRoot)}, identities ${split.stayed.length}`);
    terminal.result(
      `Link fact ${position} was applied. Queries return the new persons once the event writer has stored the decision.`,
    );
    return EXIT.ok;
  }
  terminal.progress(`no identities were split: ${reasonOf({ split, outcome, reason })}`);
  return EXIT.failed;
}

function reasonOf({ split, outcome, reason }: { split: unknown; outcome: string; reason: string }): string {
  if (split === null) return 'the linkers run a release that does not support unlinking: upgrade the linkers first';
  return outcome === 'refused' ? refusalText(reason) : 'there is nothing to split';
}

/** Maximum number of refused facts that `allow` republishes. */
const REPUBLISHED_MAX = 10_000;

const EFFECTS: Readonly<Record<Ruling['verdict'], string>> = {
  allow: 'This allows the id to link more anonymous ids. Its refused links will be decided again.',
  block: 'This blocks the id from linking identities. To split persons that it has merged, use identity unlink.',
};

export async function listSuspects(
  context: UnlinkContext,
  { json = false, ...options }: EnvironmentOptions & JsonOption,
  terminal: Terminal,
): Promise<void> {
  const environmentId = environmentOf(options);
  const found = await withPeople(context, ({ graph }) => graph.suspects(environmentId));
  for (const { key, state, since } of found) {
    const text = `${key.toString('hex')}  ${state.padEnd('blocked'.length)}  since ${toTimeText(since)}`;
    printResult(terminal, { json }, { key: key.toString('hex'), state, since }, text);
  }
  if (found.length === 0 && !json) terminal.result(`No suspects in ${environmentId}.`);
}

export async function ruleOn(
  context: UnlinkContext,
  options: SubjectOptions & WriteOptions & Pick<WantedRuling, 'verdict' | 'querySeconds'>,
  terminal: Terminal,
): Promise<ExitCode> {
  const { verdict, querySeconds } = options;
  const subject = subjectOf(options, createOpenKeyer(context));
  await confirm(EFFECTS[verdict], options, terminal);
  const republished = await rule(context, { subject, verdict, querySeconds, waitMs: options.waitSeconds * 1000 });
  const outcome = verdict === 'allow' ? `allowed; refused links to be decided again: ${republished}` : 'blocked';
  printResult(terminal, options, { state: outcome, again: republished }, outcome);
  return EXIT.ok;
}

interface WantedRuling {
  readonly subject: Subject;
  readonly verdict: Ruling['verdict'];
  readonly waitMs: number;
  readonly querySeconds: number;
}

/** @returns the number of republished facts */
async function rule(context: UnlinkContext, { subject, verdict, waitMs, querySeconds }: WantedRuling): Promise<number> {
  const { environmentId, key } = subject;
  const kind = subject.kind ?? (await kindOf(context, subject));
  return withOpened(await context.openUnlinkLog(), async (log) => {
    const fact = toRulingFact({ verdict, key, kind }, newFactFields(environmentId));
    const advice = 'and will be decided: check the linkers (npm run status), then run the command again';
    const decision = await decide(log, fact, waitMs, advice);
    if (decision.reason !== RULING_REASONS[verdict])
      throw new Error(`the linkers refused the request: ${decision.reason}`);
    if (verdict === 'block') return 0;
    const tables = await awaitTables(context);
    const rows = await tables.linksOf(environmentId, { keys: [key] }, { limit: REPUBLISHED_MAX, querySeconds });
    const { generation } = decision;
    const refused = rows.filter(({ reason, position }) => reason === 'suspect' && position.generation === generation);
    return log.republish(refused.map(({ position }) => position));
  });
}

/** Reads the kind of an identity that was selected by key. */
async function kindOf(context: UnlinkContext, { environmentId, key }: Subject): Promise<Ruling['kind']> {
  const members = await withPeople(context, async (people) => {
    if ((await people.readEpoch(environmentId)) === null) throw new MissingEpochFault();
    return people.graph.membersOf(environmentId, key);
  });
  return members.find((member) => member.key.equals(key))?.kind ?? 'untyped';
}
